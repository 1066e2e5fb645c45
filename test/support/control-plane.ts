// A management server of the tests, by @grpc/grpc-js: has resources by type, tells streams of them in every form of the discovery
// protocol, and holds each request that it gets against that protocol.

import type { TestContext } from 'node:test';
import {
  type handleBidiStreamingCall,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { FaultList } from '../../src/config/fault-list.ts';
import {
  AGGREGATED_SERVICE,
  DISCOVERY_SERVICES,
  encodeMessage,
  protoSchema,
  UnknownFieldPolicy,
} from '../../src/config/index.ts';
import { loadMessage } from '../../src/config/proto/load-message.ts';
import { decodeMessage } from '../../src/config/proto/wire.ts';
import type { JsonObject } from './bootstrap.ts';
import { untilEqual } from './eventually.ts';

const DISCOVERY = 'proxy.service.discovery.v3.';

/** As it came. */
export interface ReceivedRequest {
  /** Number of its stream, from 1. */
  readonly stream: number;
  readonly path: string;
  /** What was said with its stream. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly type_url: string;
  readonly version_info: string;
  readonly response_nonce: string;
  readonly resource_names: readonly string[];
  readonly resource_names_subscribe: readonly string[];
  readonly resource_names_unsubscribe: readonly string[];
  readonly initial_resource_versions: Readonly<Record<string, string>>;
  readonly error_detail: { readonly code: number; readonly message: string } | null;
  readonly node: { readonly id: string; readonly build_version: string; readonly user_agent_name: string } | null;
}

export interface Held {
  readonly version: string;
  readonly any: object;
  readonly ttl?: object;
  /** Under which it may be asked for, too. */
  readonly aliases?: readonly string[];
}

interface StreamType {
  nonce: string;
  /** Undefined for all. */
  names: Set<string> | undefined;
  /** Of a stream of changes: what it has been told. */
  told: Map<string, string>;
}

interface Stream {
  readonly number: number;
  readonly path: string;
  readonly isDelta: boolean;
  readonly call: ServerDuplexStream<Buffer, Buffer>;
  readonly types: Map<string, StreamType>;
}

export class ControlPlane {
  readonly requests: ReceivedRequest[] = [];
  /** What requests have done that the protocol does not allow. */
  readonly violations: string[] = [];
  identifier = 'test-plane';
  /** Each stream ends behind its first response. */
  endsAfterEach = false;
  /** Types without `proxy.` of which streams of changes hear only what they ask for by name. */
  readonly onDemand = new Set<string>();
  /** Requests are noted, and nothing is answered. */
  isSilent = false;
  port = 0;
  readonly #streams = new Set<Stream>();
  readonly #resources = new Map<string, Map<string, Held>>();
  readonly #versions = new Map<string, string>();
  readonly #server: Server;
  #lastStream = 0;
  #lastNonce = 0;

  /** @param port 0 for any. */
  static async start(
    t: TestContext,
    port = 0,
    credentials = ServerCredentials.createInsecure(),
  ): Promise<ControlPlane> {
    const plane = new ControlPlane();
    const onBound = Promise.withResolvers<number>();
    plane.#server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) =>
      error === null ? onBound.resolve(bound) : onBound.reject(error),
    );
    plane.port = await onBound.promise;
    t.after(() => plane.stop());
    return plane;
  }

  private constructor() {
    this.#server = new Server({ 'grpc.max_receive_message_length': -1 });
    const paths = [AGGREGATED_SERVICE, ...DISCOVERY_SERVICES].flatMap(({ path, streamMethod, deltaMethod }) =>
      [path.v3, path.v2].filter((each) => each !== '').flatMap((each) => [each + streamMethod, each + deltaMethod]),
    );
    const asItIs = (bytes: Buffer): Buffer => bytes;
    const handlers: Record<string, handleBidiStreamingCall<Buffer, Buffer>> = {};
    const definition: Record<string, ServiceDefinition[string]> = {};
    for (const path of new Set(paths)) {
      const codec = {
        requestSerialize: asItIs,
        requestDeserialize: asItIs,
        responseSerialize: asItIs,
        responseDeserialize: asItIs,
      };
      definition[path] = { path, requestStream: true, responseStream: true, ...codec };
      handlers[path] = (call) => this.#begin(path, call);
    }
    this.#server.addService(definition, handlers);
  }

  /** All streams end at once. */
  stop(): void {
    this.#server.forceShutdown();
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** Replaces all resources of a type, and tells whoever has asked. @param typeName without `proxy.`. */
  set(typeName: string, version: string, resources: readonly JsonObject[], ttl?: string): void {
    const name = `proxy.${typeName}`;
    const held = new Map<string, Held>();
    for (const resource of resources) {
      const { generation = 'envoy', ...json } = resource as JsonObject & { readonly generation?: string };
      const typeUrl = `type.googleapis.com/${generation === 'envoy' ? `envoy.${typeName}` : generation}`;
      const any = { type_url: typeUrl, value: bytesOf(name, json) };
      const key = String(json.name ?? json.cluster_name ?? '');
      held.set(key, {
        version,
        any,
        ...(ttl === undefined ? {} : { ttl: { seconds: Number.parseInt(ttl, 10), nanos: 0 } }),
      });
    }
    this.setRaw(typeName, version, held);
  }

  /** The same of what should not stand there: each with its own type, or with bytes in the place of fields. */
  setOdd(typeName: string, version: string, resources: readonly (readonly [typeName: string, JsonObject])[]): void {
    const held = new Map<string, Held>();
    for (const [place, [type, { generation: _none, bytes, ...json }]] of resources.entries()) {
      const value = typeof bytes === 'string' ? Buffer.from(bytes, 'hex') : bytesOf(`proxy.${type}`, json);
      const name = String(json.name ?? '');
      held.set(name === '' || held.has(name) ? `place-${place}` : name, {
        version,
        any: { type_url: `type.googleapis.com/envoy.${type}`, value },
      });
    }
    this.setRaw(typeName, version, held);
  }

  /** As if it had just been asked. */
  tellAll(): void {
    for (const stream of this.#streams) for (const typeUrl of stream.types.keys()) this.#tell(stream, typeUrl);
  }

  /** The same of anything that stands in for resources. */
  setRaw(typeName: string, version: string, resources: Map<string, Held>): void {
    const name = `proxy.${typeName}`;
    this.#resources.set(name, resources);
    this.#versions.set(name, version);
    for (const stream of this.#streams) {
      for (const typeUrl of stream.types.keys()) if (typeNameOf(typeUrl) === name) this.#tell(stream, typeUrl);
    }
  }

  /** Ends all streams. */
  endStreams(code: status = status.OK): void {
    for (const { call } of this.#streams) {
      if (code === status.OK) call.end();
      else call.emit('error', { code, details: 'ended by the test' } satisfies Partial<StatusObject>);
    }
  }

  /** Bytes as they are, to all streams. */
  sendRaw(bytes: Buffer): void {
    for (const { call } of this.#streams) call.write(bytes);
  }

  /** The last request for a type that answers a response of this version. */
  answerTo(typeName: string, version: string): ReceivedRequest | undefined {
    return this.#answers.get(`proxy.${typeName} ${version}`);
  }

  /** Resolves with it. */
  async answered(typeName: string, version: string): Promise<ReceivedRequest> {
    await untilEqual(true, () => this.answerTo(typeName, version) !== undefined, `an answer to ${typeName} ${version}`);
    return this.answerTo(typeName, version)!;
  }

  readonly #answers = new Map<string, ReceivedRequest>();
  /** Version by nonce. */
  readonly #sent = new Map<string, string>();

  #begin(path: string, call: ServerDuplexStream<Buffer, Buffer>): void {
    this.#lastStream += 1;
    const isDelta = path.includes('/Delta');
    const stream: Stream = { number: this.#lastStream, path, isDelta, call, types: new Map() };
    this.#streams.add(stream);
    call.on('data', (bytes: Buffer) => this.#heard(stream, bytes));
    call.on('error', () => this.#streams.delete(stream));
    call.on('end', () => call.end());
    call.on('close', () => this.#streams.delete(stream));
    call.on('cancelled', () => this.#streams.delete(stream));
  }

  #heard(stream: Stream, bytes: Buffer): void {
    const type = protoSchema().messageType(DISCOVERY + (stream.isDelta ? 'DeltaDiscoveryRequest' : 'DiscoveryRequest'));
    const message = decodeMessage(type, bytes) as unknown as Omit<ReceivedRequest, 'stream' | 'path' | 'metadata'>;
    const request: ReceivedRequest = {
      ...plain(message, type),
      stream: stream.number,
      path: stream.path,
      metadata: stream.call.metadata.getMap(),
    };
    this.requests.push(request);
    const isFirst = !stream.types.has(request.type_url);
    const state = stream.types.get(request.type_url) ?? { nonce: '', names: new Set(), told: new Map() };
    stream.types.set(request.type_url, state);
    this.#check(request, state, isFirst, stream);
    const version = this.#sent.get(request.response_nonce);
    if (version !== undefined) this.#answers.set(`${typeNameOf(request.type_url)} ${version}`, request);
    if (stream.isDelta) this.#heardChanges(stream, request, state, isFirst);
    else this.#heardState(stream, request, state, isFirst);
  }

  #check(request: ReceivedRequest, state: StreamType, isFirst: boolean, { number, isDelta }: Stream): void {
    const { response_nonce: nonce, type_url: type, node } = request;
    const where = `stream ${number}, ${type}`;
    if (isFirst && nonce !== '') this.violations.push(`${where}: begins with nonce ${nonce}`);
    if (!isFirst && !isDelta && nonce !== state.nonce)
      this.violations.push(`${where}: nonce ${nonce} in place of ${state.nonce}`);
    if (number > 0 && this.requests.filter((each) => each.stream === number).length === 1 && (node?.id ?? '') === '') {
      this.violations.push(`${where}: begins without a node`);
    }
  }

  #heardState(stream: Stream, request: ReceivedRequest, state: StreamType, isFirst: boolean): void {
    const former = state.names;
    const names = request.resource_names.length === 0 ? undefined : new Set(request.resource_names);
    state.names = names;
    const asksForMore = names !== undefined && [...names].some((name) => former?.has(name) !== true);
    if (
      isFirst ? request.version_info !== this.#versions.get(typeNameOf(request.type_url)) || asksForMore : asksForMore
    ) {
      this.#tell(stream, request.type_url);
    }
  }

  #heardChanges(stream: Stream, request: ReceivedRequest, state: StreamType, isFirst: boolean): void {
    const { resource_names_subscribe: more, resource_names_unsubscribe: less } = request;
    if (isFirst) {
      const isOnDemand = this.onDemand.has(typeNameOf(request.type_url).replace('proxy.', ''));
      state.names = more.length === 0 && !isOnDemand ? undefined : new Set();
      state.told = new Map(Object.entries(request.initial_resource_versions));
    }
    for (const name of more) {
      state.names?.add(name);
      // Who asks for it again has nothing of it.
      if (isFirst) continue;
      if (name === '*') state.told.clear();
      else state.told.delete(name);
    }
    for (const name of less) {
      state.names?.delete(name);
      state.told.delete(name);
    }
    if (isFirst || more.length > 0) this.#tell(stream, request.type_url, more);
  }

  /** @param asked by a stream of changes, which hears of those that are not there. */
  #tell(stream: Stream, typeUrl: string, asked: readonly string[] = []): void {
    const typeName = typeNameOf(typeUrl);
    const version = this.#versions.get(typeName);
    if (this.isSilent) return;
    const held = this.#resources.get(typeName) ?? new Map<string, Held>();
    const state = stream.types.get(typeUrl)!;
    const { names } = state;
    const wanted = [...held].filter(
      ([name, { aliases = [] }]) => names === undefined || [name, ...aliases].some((each) => names.has(each)),
    );
    this.#lastNonce += 1;
    const nonce = `nonce-${this.#lastNonce}`;
    const common = { nonce, type_url: typeUrl, control_plane: { identifier: this.identifier } };
    if (!stream.isDelta) {
      if (version === undefined) return;
      state.nonce = nonce;
      this.#sent.set(nonce, version);
      const resources = wanted.map(([name, { any, ttl }]) => (ttl === undefined ? any : inWrapper(name, any, ttl)));
      this.#send(stream, 'DiscoveryResponse', { version_info: version, resources, ...common });
      return;
    }
    const resources = wanted
      .filter(([name, { version: own }]) => state.told.get(name) !== own)
      .map(([name, { version: own, any, ttl, aliases = [] }]) => {
        return { name, aliases, version: own, resource: any, ...(ttl && { ttl }) };
      });
    const known = new Set([...held].flatMap(([name, { aliases = [] }]) => [name, ...aliases]));
    const gone = [...state.told.keys()].filter((name) => !held.has(name));
    const missing = asked.filter((name) => name !== '*' && !known.has(name) && !gone.includes(name));
    const removed = [...gone, ...missing];
    for (const name of gone) state.told.delete(name);
    for (const { name, version: own } of resources) state.told.set(name, own);
    // That there is nothing is news to one who has nothing.
    if (resources.length === 0 && removed.length === 0 && (version === undefined || state.told.size > 0)) return;
    this.#sent.set(nonce, version ?? '');
    const system = { system_version_info: version ?? '', resources, removed_resources: removed };
    this.#send(stream, 'DeltaDiscoveryResponse', { ...system, ...common });
  }

  #send({ call }: Stream, name: string, message: object): void {
    call.write(Buffer.from(encodeMessage(protoSchema().messageType(DISCOVERY + name), message)));
    if (this.endsAfterEach) call.end();
  }
}

/** A resource's message in its binary form. @param json fields as a configuration has them. */
export function bytesOf(typeName: string, json: JsonObject): Uint8Array {
  const type = protoSchema().messageType(typeName);
  const faults = new FaultList();
  const input = { configPath: '', configJson: JSON.stringify(json), configYaml: '' };
  const loaded = loadMessage(type, input, { faults, unknownFields: new UnknownFieldPolicy('reject') });
  if (loaded === undefined || faults.hasErrors)
    throw new Error(faults.all.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  return encodeMessage(type, loaded.message);
}

function inWrapper(name: string, any: object, ttl: object): object {
  const type = protoSchema().messageType(`${DISCOVERY}Resource`);
  return {
    type_url: 'type.googleapis.com/envoy.service.discovery.v3.Resource',
    value: encodeMessage(type, { name, resource: any, ttl }),
  };
}

function typeNameOf(typeUrl: string): string {
  return protoSchema().find(typeUrl)?.type.fullName.slice(1) ?? typeUrl;
}

/** With the defaults of its prototype. */
function plain<Message extends object>(message: Message, type: { readonly fields: object }): Message {
  const entries = Object.keys(type.fields).map((name) => [name, message[name as keyof Message]]);
  const defaults = {
    resource_names: [],
    resource_names_subscribe: [],
    resource_names_unsubscribe: [],
    version_info: '',
  };
  return { ...defaults, ...Object.fromEntries(entries) } as Message;
}
