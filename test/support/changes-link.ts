// A management server that tells changes of one type, as far as it is asked for them by name, and the stream to it: what either has said
// is on its way until a test delivers it. Without a wire, but in the bytes of the protocol.

import { openChangesResponse } from '../../src/config/exchange.ts';
import { type DiscoveryService, encodeMessage, protoSchema, UnknownFieldPolicy } from '../../src/config/index.ts';
import { decodeMessage } from '../../src/config/proto/wire.ts';
import { ChangesExchange } from '../../src/control-plane/subscription/management-server/changes-exchange.ts';
import { refusalText } from '../../src/control-plane/subscription/management-server/refusal-text.ts';
import { subscribeTo } from '../../src/control-plane/subscription/management-server/type-subscription.ts';
import {
  WatchedType,
  type WatchedTypeDependencies,
} from '../../src/control-plane/subscription/management-server/watched-type.ts';
import type { Subscriptions } from '../../src/control-plane/subscription/subscription.ts';
import type { JsonObject } from './bootstrap.ts';
import { bytesOf } from './control-plane.ts';

const DISCOVERY = 'proxy.service.discovery.v3.';

interface Request {
  readonly resource_names_subscribe: readonly string[];
  readonly resource_names_unsubscribe: readonly string[];
  readonly initial_resource_versions: Readonly<Record<string, string>>;
}

export interface ServedResource {
  readonly json: JsonObject;
  /** Under which it may be asked for, too. */
  readonly aliases?: readonly string[];
  /** The same, and it need not say so. */
  readonly untoldAliases?: readonly string[];
}

interface Served extends ServedResource {
  readonly version: string;
  /** By which it may be asked for. */
  readonly names: readonly string[];
}

/** What a stream has been told of. */
interface Told {
  readonly version: string;
  /** By which it may have been asked for; undefined where only the client knows. */
  readonly names: readonly string[] | undefined;
}

/** As the server sees it. */
class ServedStream {
  readonly toServer: Uint8Array[] = [];
  readonly toClient: Uint8Array[] = [];
  readonly names = new Set<string>();
  readonly told = new Map<string, Told>();
  isFirst = true;

  isAskedFor(names: readonly string[]): boolean {
    return names.some((name) => this.names.has(name));
  }
}

export class ChangesLink {
  readonly subscriptions: Subscriptions;
  readonly #service: DiscoveryService;
  readonly #watched: WatchedType;
  readonly #exchange: ChangesExchange;
  readonly #served = new Map<string, Served>();
  #stream = new ServedStream();
  #isDue = false;
  #lastVersion = 0;

  constructor(service: DiscoveryService, deps: Pick<WatchedTypeDependencies, 'clock' | 'faults' | 'log'>) {
    const typeDeps = { ...deps, unknownFields: new UnknownFieldPolicy('reject'), server: () => 'the server' };
    this.#service = service;
    this.#watched = new WatchedType('changes', service.isWildcard, typeDeps, service.hasLongNames);
    this.#exchange = new ChangesExchange({ service, typeUrl: service.typeUrl.v3 }, this.#watched);
    const type = { watched: this.#watched, exchange: this.#exchange };
    const onDue = (): void => {
      this.#isDue = true;
    };
    this.subscriptions = { subscribe: (request) => subscribeTo(type, request, () => {}, onDue) };
    this.#exchange.begin();
  }

  /** The server has it now as it is here, or not any more, and tells whoever has asked for it. */
  set(name: string, resource: ServedResource | undefined): void {
    this.#lastVersion += 1;
    if (resource === undefined) this.#served.delete(name);
    else {
      const names = [name, ...(resource.aliases ?? []), ...(resource.untoldAliases ?? [])];
      this.#served.set(name, { ...resource, version: `${this.#lastVersion}`, names });
    }
    this.#answer([]);
  }

  /** Requests that are due are on their way. @returns false where nothing was to be said. */
  say(): boolean {
    if (!this.#isDue) return false;
    this.#isDue = false;
    while (this.#exchange.isDue) this.#stream.toServer.push(this.#exchange.next(undefined));
    return true;
  }

  /** A request arrives. @returns false where none is on its way. */
  hear(): boolean {
    const stream = this.#stream;
    const bytes = stream.toServer.shift();
    if (bytes === undefined) return false;
    const type = protoSchema().messageType(`${DISCOVERY}DeltaDiscoveryRequest`);
    const request = decodeMessage(type, bytes) as unknown as Request;
    if (stream.isFirst) {
      for (const [name, version] of Object.entries(request.initial_resource_versions)) {
        stream.told.set(name, { version, names: undefined });
      }
    }
    for (const name of request.resource_names_subscribe) {
      stream.names.add(name);
      // Who asks for it again has nothing of it.
      if (!stream.isFirst) stream.told.delete(name);
    }
    for (const name of request.resource_names_unsubscribe) stream.names.delete(name);
    for (const [name, { names }] of stream.told)
      if (names !== undefined && !stream.isAskedFor(names)) stream.told.delete(name);
    stream.isFirst = false;
    this.#answer(request.resource_names_subscribe);
    return true;
  }

  /** A response arrives; what becomes of it takes some turns. @returns false where none is on its way. */
  tell(): boolean {
    const stream = this.#stream;
    const bytes = stream.toClient.shift();
    if (bytes === undefined) return false;
    const response = openChangesResponse(Buffer.from(bytes));
    this.#exchange.taking();
    void this.#watched.take(response, Promise.resolve()).then((taken) => {
      this.#exchange.taken(taken!.read, refusalText(taken!.refusals), stream !== this.#stream);
      if (stream === this.#stream) this.#isDue = true;
    });
    return true;
  }

  /** Resolves when all that has arrived has been taken in. */
  async idle(): Promise<void> {
    await this.#watched.idle;
    // What is said of it is said behind that.
    await new Promise(setImmediate);
  }

  /** The server has all that is due, and all that it says has arrived. @returns whether that was anything. */
  async exchange(): Promise<boolean> {
    for (let hasSaid = false; ; hasSaid = true) {
      const isSaid = [this.say(), this.hear(), this.tell()].includes(true);
      await this.idle();
      if (!isSaid) return hasSaid;
    }
  }

  /** The stream ends, with all that is on its way, and another one begins. */
  breakOff(): void {
    this.#stream = new ServedStream();
    this.#watched.lost();
    this.#exchange.begin();
    this.#isDue = true;
  }

  /** What is news to the stream. @param asked it hears of those that are not there, too. */
  #answer(asked: readonly string[]): void {
    const stream = this.#stream;
    const { told, toClient } = stream;
    const resources: object[] = [];
    const known = new Set<string>();
    for (const [name, { json, version, names, aliases = [] }] of this.#served) {
      for (const each of names) known.add(each);
      const isAsked = names.some((each) => asked.includes(each));
      if (!stream.isAskedFor(names) || (told.get(name)?.version === version && !isAsked)) continue;
      told.set(name, { version, names });
      const any = { type_url: this.#service.typeUrl.v3, value: bytesOf(this.#service.typeName, json) };
      resources.push({ name, aliases, version, resource: any });
    }
    const gone = [...told.keys()].filter((name) => !this.#served.has(name));
    for (const name of gone) told.delete(name);
    const missing = asked.filter((name) => name !== '*' && !known.has(name) && !gone.includes(name));
    const removed = [...gone, ...missing];
    if (resources.length === 0 && removed.length === 0) return;
    this.#lastVersion += 1;
    const message = {
      system_version_info: `${this.#lastVersion}`,
      resources,
      removed_resources: removed,
      nonce: `nonce-${this.#lastVersion}`,
      type_url: this.#service.typeUrl.v3,
    };
    const type = protoSchema().messageType(`${DISCOVERY}DeltaDiscoveryResponse`);
    toClient.push(encodeMessage(type, message));
  }
}
