export { compileByteMatch } from '../base/string-match.ts';
export type { AccessLogger, AccessLoggerKind, AccessLoggerRegistry } from './access-log/access-logger.ts';
export { compileFilter } from './access-log/filter.ts';
export { compileLine } from './access-log/line.ts';
export { DataPlane, type DataPlaneDependencies } from './data-plane.ts';
export { endpointText } from './format/endpoint-text.ts';
export type { DownstreamFacts, Endpoint, FormatFacts } from './format/facts.ts';
export { StreamFacts } from './format/stream-facts.ts';
export { TextFormatter } from './format/text-formatter.ts';
export { dumpHeapFor, sampleHeapFor } from './heap-orders.ts';
export { type BodyFormat, compileBodyFormat } from './http/body-format.ts';
export type {
  BodyData,
  BodyUse,
  CountedCluster,
  CreateFilter,
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterGauge,
  FilterStatus,
  FilterTimes,
  HeadTest,
  HttpFilter,
  HttpFilterKind,
  HttpFilterRegistry,
  SharedCount,
  TreeSubject,
} from './http/filter.ts';
export type { CallAnswer, CallFailure, CallReceiver, CallRequest } from './http/filter-call.ts';
export { isGrpc } from './http/grpc-request.ts';
export { DNS_FAILURE, FILTER_FAULT, type LocalReply, REQUEST_HELD_TOO_LARGE, ReplyForm } from './http/local-reply.ts';
export type { StreamAnswer, StreamRequest } from './http/outgoing-stream.ts';
export type { Taps } from './http/taps.ts';
export { TextHead } from './http/text-head.ts';
export type { Trailers } from './http/trailers.ts';
export { CONNECTION_INPUTS } from './matching/connection-inputs.ts';
export { compileMatchTree, type FindMatch, type InputReaders, type MatchTools } from './matching/match-tree.ts';
export { REQUEST_INPUTS } from './matching/request-inputs.ts';
export type { MatchedResponse } from './matching/response-inputs.ts';
export { stateNumber, TCP_PROXY_CLUSTER, UPSTREAM_HOST, UPSTREAM_PORT } from './network/filter-state.ts';
export { freeGiven } from './network/given-memory.ts';
export type {
  CompiledNetworkFilter,
  FilterHost,
  FilterLink,
  FilterUpstreams,
  LinkReceiver,
  NetworkFilter,
  NetworkFilterCallbacks,
  NetworkFilterContext,
  NetworkFilterKind,
  NetworkFilterRegistry,
  NetworkFilterStatus,
  Refusal,
  TerminalCallbacks,
  TerminalFilterContext,
  TerminalFilterKind,
  Termination,
} from './network/network-filter.ts';
export { chooseReadMode } from './network/read-mode.ts';
export { flagBit, flagNumbers, NO_FLAGS } from './response-flags.ts';
export { compileStateMatch } from './route/client-conditions.ts';
export {
  compileHeaderEdits,
  type EditableHead,
  type FactsSource,
  type HeaderEditor,
  replaceField,
} from './route/header-editor.ts';
export { compileHeaderTest } from './route/header-matcher.ts';
export { decodedQueryValue, firstValue as firstQueryValue } from './route/query-matcher.ts';
export { compileRedirect, type RedirectLocation } from './route/redirect.ts';
export { findRequestCookie, requestCookie, setCookieText } from './route/request-cookie.ts';
export { compileRetryPolicy, type RetryPolicy } from './route/retry-policy.ts';
export { redirectedHead } from './router/redirect-target.ts';
export { ReportQueue } from './tracing/report-queue.ts';
export { ReportStream } from './tracing/report-stream.ts';
export { compileTags, type ReadTag } from './tracing/span-tags.ts';
export type {
  FinishedSpan,
  ReportContext,
  SpanContext,
  SpanTag,
  TracedHead,
  Tracer,
  TracerContext,
  TracerKind,
  TracerRegistry,
} from './tracing/tracer.ts';
