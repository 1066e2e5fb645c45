// The messages of an exchange with a management server: requests → bytes, bytes → responses whose resources are still to be read.
// Main thread.

import type { ConfigFault } from '../fault.ts';
import type { UnpackedAny } from '../proto/any.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { messageJson } from '../proto/json-text/message-json.ts';
import { protoSchema } from '../proto/root.ts';
import { decodeMessage } from '../proto/wire.ts';
import { encodeMessage, partsOf, textOf } from '../proto/wire-parts.ts';
import { durationMs } from '../resources/units.ts';
import type { ConfigDocument } from '../source/config-document.ts';
import { type DiscoveryService, discoveryServiceOf } from './discovery-services.ts';

const REQUEST = 'proxy.service.discovery.v3.DiscoveryRequest';
const RESPONSE = 'proxy.service.discovery.v3.DiscoveryResponse';
const DELTA_REQUEST = 'proxy.service.discovery.v3.DeltaDiscoveryRequest';
const DELTA_RESPONSE = 'proxy.service.discovery.v3.DeltaDiscoveryResponse';
const RESOURCE = 'proxy.service.discovery.v3.Resource';
const BOOTSTRAP = 'proxy.config.bootstrap.v3.Bootstrap';
const NODE = 'proxy.config.core.v3.Node';

/** google.rpc.Code.INTERNAL. */
const REFUSED_CODE = 13;

/** One of a response, unread. */
export interface RawResource {
  /** Empty where it has none, or is of another type. */
  readonly name: string;
  /** What it calls itself, where it comes by another name. */
  readonly otherName?: string;
  /** Under which others may have asked for it. */
  readonly aliases?: readonly string[];
  /** Empty where resources have none for themselves. */
  readonly version: string;
  readonly typeUrl: string;
  /** Undefined for a heartbeat: the one that there is goes on living. */
  readonly bytes: Uint8Array | undefined;
  /** How long it lives unless it comes again; undefined for ever. */
  readonly ttlMs: number | undefined;
  /** As its text has said it; absent where it has come in its binary form. */
  readonly opened?: OpenedText;
}

/** A resource that has come as text. */
export interface OpenedText {
  /** Undefined where it could not be opened. */
  readonly content: UnpackedAny | undefined;
  /** Its place in the response. */
  readonly at: string;
  /** Met when the response was read. */
  readonly faults: readonly ConfigFault[];
  readonly document: ConfigDocument;
}

export interface RawResponse {
  readonly typeUrl: string;
  /** Undefined for a type that nobody can ask for. */
  readonly service: DiscoveryService | undefined;
  readonly version: string;
  readonly nonce: string;
  /** Who the server says it is; empty where it does not. */
  readonly controlPlane: string;
  readonly resources: readonly RawResource[];
  /** Names of those that there are no longer. */
  readonly removed: readonly string[];
}

export interface StateRequest {
  readonly typeUrl: string;
  /** The last that was accepted. */
  readonly version: string;
  readonly names: Iterable<string>;
  readonly nonce: string;
  /** Why the response of the nonce is refused; undefined where it is not. */
  readonly refusal: string | undefined;
  /** Undefined where the stream has said it. */
  readonly node: NodeMessage | undefined;
}

export interface ChangesRequest extends Pick<StateRequest, 'typeUrl' | 'nonce' | 'refusal' | 'node'> {
  readonly subscribed: Iterable<string>;
  readonly unsubscribed: Iterable<string>;
  /** By name: what the proxy has when a stream begins. */
  readonly versions: ReadonlyMap<string, string>;
}

/** Who asks, as requests say it. */
export interface NodeMessage {
  readonly message: object;
}

/** The same node, which can do more. @param feature by the name that servers know it by. */
export function withFeature({ message }: NodeMessage, feature: string): NodeMessage {
  const { client_features: features = [] } = message as { client_features?: readonly string[] };
  return { message: { ...message, client_features: [...features, feature] } };
}

/** @param bootstrap in its binary form. @param buildVersion what servers of the older interface are told; undefined for none. */
export function nodeMessage(bootstrap: Uint8Array, buildVersion: string | undefined): NodeMessage {
  const schema = protoSchema();
  const [bytes = new Uint8Array(0)] = partsOf(schema, schema.messageType(BOOTSTRAP), bootstrap, ['node']);
  const message = decodeMessage(schema.messageType(NODE), bytes) as unknown as { build_version: string };
  if (buildVersion !== undefined) message.build_version = buildVersion;
  return { message };
}

export function encodeStateRequest({ typeUrl, version, names, nonce, refusal, node }: StateRequest): Uint8Array {
  return encodeMessage(protoSchema().messageType(REQUEST), {
    version_info: version,
    ...(node && { node: node.message }),
    resource_names: [...names],
    type_url: typeUrl,
    response_nonce: nonce,
    ...errorDetail(refusal),
  });
}

/** The same as JSON, for servers that are asked by HTTP. */
export function stateRequestText(request: StateRequest): string {
  const schema = protoSchema();
  const text = messageJson(schema, schema.messageType(REQUEST), encodeStateRequest(request), { revealsSecrets: true });
  return [...text].join('');
}

export function encodeChangesRequest(request: ChangesRequest): Uint8Array {
  const { typeUrl, nonce, refusal, node, subscribed, unsubscribed, versions } = request;
  return encodeMessage(protoSchema().messageType(DELTA_REQUEST), {
    ...(node && { node: node.message }),
    type_url: typeUrl,
    resource_names_subscribe: [...subscribed],
    resource_names_unsubscribe: [...unsubscribed],
    initial_resource_versions: Object.fromEntries(versions),
    response_nonce: nonce,
    ...errorDetail(refusal),
  });
}

function errorDetail(refusal: string | undefined): object {
  return refusal === undefined ? {} : { error_detail: { code: REFUSED_CODE, message: refusal } };
}

/** @throws for bytes that are no such message. */
export function openStateResponse(bytes: Uint8Array): RawResponse {
  const message = decodeMessage(protoSchema().messageType(RESPONSE), bytes) as unknown as MessageTypes[typeof RESPONSE];
  const service = discoveryServiceOf(message.type_url);
  return {
    typeUrl: message.type_url,
    service,
    version: message.version_info,
    nonce: message.nonce,
    controlPlane: message.control_plane?.identifier ?? '',
    resources: message.resources.map((any) => rawResource(any, service)),
    removed: [],
  };
}

/** @throws for bytes that are no such message. */
export function openChangesResponse(bytes: Uint8Array): RawResponse {
  const type = protoSchema().messageType(DELTA_RESPONSE);
  const message = decodeMessage(type, bytes) as unknown as MessageTypes[typeof DELTA_RESPONSE];
  const service = discoveryServiceOf(message.type_url);
  const removed = new Set([...message.removed_resources, ...message.removed_resource_names.map(({ name }) => name)]);
  return {
    typeUrl: message.type_url,
    service,
    version: message.system_version_info,
    nonce: message.nonce,
    controlPlane: message.control_plane?.identifier ?? '',
    resources: message.resources.map((resource) => wrapped(resource, service)),
    removed: [...removed],
  };
}

interface Any {
  readonly type_url: string;
  readonly value: Uint8Array;
}

/** A resource may come in a wrapper that says more of it. */
function rawResource(any: Any, service: DiscoveryService | undefined): RawResource {
  const schema = protoSchema();
  const type = schema.find(any.type_url)?.type;
  if (type !== schema.messageType(RESOURCE)) return bare(any, service, '', undefined);
  return wrapped(decodeMessage(type, any.value) as unknown as MessageTypes[typeof RESOURCE], service);
}

function wrapped(resource: MessageTypes[typeof RESOURCE], service: DiscoveryService | undefined): RawResource {
  const { resource: any, name, version, ttl, resource_name: long } = resource;
  const ttlMs = ttl === null ? undefined : durationMs(ttl);
  const said = name || (long?.name ?? '');
  const aliases = resource.aliases.length > 0 && { aliases: resource.aliases };
  if (any === null) return { name: said, ...aliases, version, typeUrl: '', bytes: undefined, ttlMs };
  const found = bare(any, service, version, ttlMs);
  if (said === '') return found;
  // The name outside is what was asked for. Virtual hosts have those of their tables before their own.
  const isOther = found.name !== '' && found.name !== said && service?.hasLongNames === false;
  return { ...found, ...aliases, name: said, ...(isOther && { otherName: found.name }) };
}

function bare(
  any: Any,
  service: DiscoveryService | undefined,
  version: string,
  ttlMs: number | undefined,
): RawResource {
  const { type_url: typeUrl, value: bytes } = any;
  const isOfService = service !== undefined && discoveryServiceOf(typeUrl) === service;
  const name = isOfService ? nameOf(service, bytes) : '';
  return { name, version, typeUrl, bytes, ttlMs };
}

/** Without decoding the others; empty where the bytes are none. */
function nameOf({ typeName, nameField }: DiscoveryService, bytes: Uint8Array): string {
  try {
    return textOf(protoSchema().messageType(typeName), bytes, nameField);
  } catch {
    return '';
  }
}
