// What a management server is asked: requests → bytes. Main thread.

import { messageJson } from '../proto/json-text/message-json.ts';
import { protoSchema } from '../proto/root.ts';
import { decodeMessage } from '../proto/wire.ts';
import { encodeMessage, partsOf } from '../proto/wire-parts.ts';

const REQUEST = 'proxy.service.discovery.v3.DiscoveryRequest';
const DELTA_REQUEST = 'proxy.service.discovery.v3.DeltaDiscoveryRequest';
const BOOTSTRAP = 'proxy.config.bootstrap.v3.Bootstrap';
const NODE = 'proxy.config.core.v3.Node';

const LENGTH_DELIMITED = 2;
/** Tag and length before a text. */
const MOST_HEAD_BYTES = 6;
/** UTF-8, of a unit of UTF-16. */
const MOST_BYTES_PER_UNIT = 3;
/** google.rpc.Code.INTERNAL. */
const REFUSED_CODE = 13;

export interface StateRequest {
  readonly typeUrl: string;
  /** The last that was accepted. */
  readonly version: string;
  readonly names: RequestNames;
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

/** Which resources a request is for, as it says them: they are most of it, and many requests say the same ones. */
export interface RequestNames {
  readonly bytes: Uint8Array;
}

export const NO_NAMES: RequestNames = { bytes: new Uint8Array(0) };

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
  const type = protoSchema().messageType(REQUEST);
  // In the order of their numbers, as if they had been written together.
  const head = encodeMessage(type, { version_info: version, ...(node && { node: node.message }) });
  const rest = encodeMessage(type, { type_url: typeUrl, response_nonce: nonce, ...errorDetail(refusal) });
  return Buffer.concat([head, names.bytes, rest]);
}

/** There may be a hundred thousand of them. */
export function requestNames(names: Iterable<string>): RequestNames {
  const { id } = protoSchema().messageType(REQUEST).fields.resource_names!;
  const list = [...names];
  let length = 0;
  for (const name of list) length += MOST_HEAD_BYTES + MOST_BYTES_PER_UNIT * name.length;
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const name of list) {
    bytes[at] = (id << 3) | LENGTH_DELIMITED;
    at = writeVarint(bytes, at + 1, Buffer.byteLength(name));
    at += bytes.write(name, at);
  }
  // Most of it may be air.
  return { bytes: Buffer.from(bytes.subarray(0, at)) };
}

function writeVarint(bytes: Buffer, at: number, value: number): number {
  let [rest, next] = [value, at];
  for (; rest > 127; rest >>>= 7) bytes[next++] = (rest & 127) | 128;
  bytes[next++] = rest;
  return next;
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
