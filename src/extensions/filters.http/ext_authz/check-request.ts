// What a gRPC service is asked: a CheckRequest of the authorization service, v2 and v3 alike.

import type { DownstreamFacts, Endpoint, FormatFacts } from '../../../data-plane/index.ts';
import type { Metadata } from '../../../snapshot/index.ts';
import { asUtf8, MessageWriter } from '../grpc/wire.ts';
import type { Labels } from './settings.ts';

/** As text of bytes: values are one character per byte. */
type Field = readonly [name: string, value: string];

export interface CheckRequest {
  readonly facts: FormatFacts;
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly scheme: string;
  /** With the parts of the first line among them, as `:method`. */
  readonly fields: readonly Field[];
  readonly hasRawHeaders: boolean;
  readonly body: Buffer | null;
  readonly isRawBody: boolean;
  /** Of whom the client says that it is one of. */
  readonly clientService: string;
  readonly includesCertificate: boolean;
  readonly includesTlsSession: boolean;
  /** Of this proxy. */
  readonly labels: Labels;
  readonly context: Readonly<Record<string, string>>;
  readonly metadata: Metadata;
  readonly routeMetadata: Metadata;
}

export function encodeCheckRequest(request: CheckRequest): Buffer {
  const writer = new MessageWriter();
  writer.message(1, (attributes) => writeAttributes(attributes, request));
  return writer.finish();
}

/** What is told of a connection. */
export type ConnectionTold = Pick<CheckRequest, 'includesCertificate' | 'includesTlsSession' | 'labels'>;

/** The same about a connection, of which there is no request. */
export function encodeConnectionCheck(downstream: DownstreamFacts, told: ConnectionTold): Buffer {
  const writer = new MessageWriter();
  writer.message(1, (attributes) => {
    writePeers(attributes, downstream, '', told);
    writeTlsSession(attributes, downstream, told);
  });
  return writer.finish();
}

function writePeers(
  attributes: MessageWriter,
  downstream: DownstreamFacts,
  clientService: string,
  { includesCertificate, labels }: ConnectionTold,
): void {
  attributes.message(1, (peer) => {
    const certificate = downstream.tls?.peer ?? null;
    writePeer(peer, downstream.remote, clientService, certificate);
    if (includesCertificate && certificate !== null) {
      peer.text(5, encodeURIComponent(certificate.certificate.toString()));
    }
  });
  attributes.message(2, (peer) => {
    writePeer(peer, downstream.local, '', downstream.tls?.own ?? null);
    for (const [name, value] of Object.entries(labels)) peer.entry(3, name, (entry) => entry.text(2, value));
  });
}

function writeTlsSession(
  attributes: MessageWriter,
  { tls }: DownstreamFacts,
  { includesTlsSession }: ConnectionTold,
): void {
  if (includesTlsSession && tls !== null) attributes.message(12, (session) => session.text(1, tls.serverName));
}

function writeAttributes(attributes: MessageWriter, request: CheckRequest): void {
  const { facts } = request;
  const { downstream } = facts;
  writePeers(attributes, downstream, request.clientService, request);
  attributes.message(4, (message) => {
    message.message(1, (time) => {
      const seconds = Math.floor(facts.startTimeMs / 1000);
      time.integer(1, seconds);
      time.integer(2, Math.round((facts.startTimeMs - seconds * 1000) * 1e6));
    });
    message.message(2, (http) => writeHttp(http, request));
  });
  for (const [key, value] of Object.entries(request.context)) {
    attributes.entry(10, key, (entry) => entry.text(2, value));
  }
  writeMetadata(attributes, 11, request.metadata);
  writeTlsSession(attributes, downstream, request);
  writeMetadata(attributes, 13, request.routeMetadata);
}

interface Identified {
  readonly subject: string;
  readonly names: { readonly uri: readonly string[]; readonly dns: readonly string[] };
}

/** @param certificate that tells who it is: the first of its names counts, else its subject. */
function writePeer(peer: MessageWriter, { ip, port }: Endpoint, service: string, certificate: Identified | null): void {
  peer.message(1, (address) => {
    if (port === 0) address.message(2, (pipe) => pipe.text(1, ip));
    else {
      address.message(1, (socket) => {
        socket.text(2, ip);
        socket.integer(3, port);
      });
    }
  });
  peer.byteText(2, service);
  if (certificate === null) return;
  peer.text(4, certificate.names.uri[0] ?? certificate.names.dns[0] ?? certificate.subject);
}

function writeHttp(http: MessageWriter, request: CheckRequest): void {
  const { facts, body, isRawBody, fields, hasRawHeaders } = request;
  http.byteText(1, facts.streamId);
  http.text(2, request.method);
  if (!hasRawHeaders) {
    for (const [name, value] of joined(fields)) http.entry(3, name, (entry) => entry.byteText(2, value));
  }
  http.byteText(4, request.path);
  http.byteText(5, request.host);
  http.text(6, request.scheme);
  http.integer(9, facts.bytesReceived);
  http.text(10, facts.protocol);
  if (body !== null && !isRawBody) http.bytes(11, asUtf8(body));
  if (body !== null && isRawBody) http.bytes(12, body);
  if (!hasRawHeaders) return;
  http.message(13, (map) => {
    for (const [name, value] of fields) {
      map.message(1, (field) => {
        field.text(1, name);
        field.bytes(3, Buffer.from(value, 'latin1'));
      });
    }
  });
}

function writeMetadata(attributes: MessageWriter, field: number, metadata: Metadata): void {
  const namespaces = Object.entries(metadata);
  if (namespaces.length === 0) return;
  attributes.message(field, (message) => {
    for (const [name, values] of namespaces) message.entry(1, name, (entry) => entry.struct(2, values));
  });
}

/** Fields of one name as one (RFC 9110 section 5.3). */
function joined(fields: readonly Field[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of fields) {
    const before = values.get(name);
    values.set(name, before === undefined ? value : `${before},${value}`);
  }
  return values;
}
