// What spans tell of their requests, under the names that the reference gives them. Worked out when a request is over, and
// only where its span is reported. Texts are byte text.

import type { CustomTag } from '../../snapshot/index.ts';
import { endpointText } from '../format/endpoint-text.ts';
import type { FormatFacts } from '../format/facts.ts';
import { grpcOutcome } from '../format/grpc-outcome.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import { compileCommand } from '../format/values.ts';
import { shortFlags } from '../response-flags.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { SpanTag } from './tracer.ts';

const MISSING = '-';
const FIRST_SERVER_ERROR = 500;
/** UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS. */
const GRPC_FAILURES: ReadonlySet<number> = new Set([2, 4, 12, 13, 14, 15]);
/** A header's value in a tag: spans wait in memory, and collectors refuse long ones. */
const MAX_VALUE_LENGTH = 1024;

export type ReadTag = (facts: FormatFacts) => SpanTag | null;

export function compileTags(tags: readonly CustomTag[]): readonly ReadTag[] {
  return tags.map(compileTag);
}

function compileTag({ name, value }: CustomTag): ReadTag {
  switch (value.kind) {
    case 'literal': {
      const tag: SpanTag = [name, value.text];
      return () => tag;
    }
    case 'request-header': {
      const { name: header, missing } = value;
      return (facts) => tagOf(name, facts.requestHeader(header), missing);
    }
    case 'metadata': {
      const read = compileCommand({ operator: 'METADATA', args: [value.source, ...value.path], maxLength: 0 });
      const { missing } = value;
      return (facts) => {
        const found = read(facts);
        return tagOf(name, found === undefined ? undefined : String(found), missing);
      };
    }
    case 'format': {
      const formatter = new TextFormatter(value.segments, { missing: '' });
      return (facts) => tagOf(name, formatter.render(facts), '');
    }
  }
}

function tagOf(name: string, value: string | undefined, missing: string): SpanTag | null {
  const text = value || missing;
  return text === '' ? null : [name, cut(text)];
}

/** Of the request as a whole. @param service header names of who the client says that it is one of. */
export function requestTags(facts: FormatFacts, maxPathLength: number, serviceNames: readonly string[]): SpanTag[] {
  const header = (name: string): string | undefined => facts.requestHeader(name);
  const tags: SpanTag[] = [
    ['component', 'proxy'],
    ['guid:x-request-id', cut(header('x-request-id') ?? MISSING)],
    ['http.url', urlOf(facts, maxPathLength)],
    ['http.method', header(':method') ?? MISSING],
    ['downstream_cluster', cut(serviceNames.map(header).find((value) => value) ?? MISSING)],
    ['user_agent', cut(header('user-agent') ?? MISSING)],
    ['http.protocol', facts.protocol || MISSING],
    ['peer.address', facts.downstream.directRemote.ip || MISSING],
  ];
  const clientTrace = header('x-client-trace-id');
  if (clientTrace !== undefined) tags.push(['guid:x-client-trace-id', cut(clientTrace)]);
  if (facts.isGrpc) {
    tags.push(['grpc.path', cut(header(':path') ?? MISSING)]);
    tags.push(['grpc.authority', cut(header(':authority') ?? MISSING)]);
    tags.push(['grpc.content_type', cut(header('content-type') ?? MISSING)]);
    const timeout = header('grpc-timeout');
    if (timeout !== undefined) tags.push(['grpc.timeout', cut(timeout)]);
  }
  tags.push(['request_size', String(facts.bytesReceived)], ['response_size', String(facts.bytesSent)]);
  if (facts.upstream !== null) {
    tags.push(['upstream_cluster', facts.upstreamCluster], ['upstream_cluster.name', facts.upstreamCluster]);
    const address = endpointText(facts.upstream.remote);
    if (address !== undefined) tags.push(['upstream_address', address]);
  }
  tags.push(['http.status_code', String(facts.status)], ['response_flags', shortFlags(facts.flags) || MISSING]);
  const grpcStatus = facts.isGrpc ? grpcOutcome(facts) : undefined;
  if (grpcStatus !== undefined) tags.push(['grpc.status_code', String(grpcStatus)]);
  return tags;
}

/** A request that was not answered, or badly: of the statuses of gRPC those that are the server's fault. */
export function isFailure(facts: FormatFacts): boolean {
  const { status, isGrpc } = facts;
  if (status === 0 || status >= FIRST_SERVER_ERROR) return true;
  const grpcStatus = isGrpc ? grpcOutcome(facts) : undefined;
  return grpcStatus !== undefined && GRPC_FAILURES.has(grpcStatus);
}

function urlOf(facts: FormatFacts, maxPathLength: number): string {
  const path = facts.requestHeader('x-proxy-original-path') ?? facts.requestHeader(':path') ?? '';
  const scheme = facts.requestHeader(':scheme') ?? 'http';
  return `${cut(scheme)}://${cut(facts.requestHeader(':authority') ?? '')}${path.slice(0, maxPathLength)}`;
}

function cut(text: string): string {
  return text.length > MAX_VALUE_LENGTH ? text.slice(0, MAX_VALUE_LENGTH) : text;
}

/** In place of what a head says of it. */
export function writePlace(head: EditableHead, fields: readonly SpanTag[]): void {
  for (const [name, value] of fields) {
    head.removeField(name);
    if (value !== '') head.append(name, value);
  }
}

/** Of tags of one name the last, where the first stood. */
export function lastOfEach(tags: readonly SpanTag[]): readonly SpanTag[] {
  const values = new Map(tags);
  return values.size === tags.length ? tags : [...values];
}
