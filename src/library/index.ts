// The package export `weir-proxy`: the proxy in your own process. Reference: docs/library.md.

export { WeirError } from '../base/errors.ts';
export type {
  AwaitedResult,
  BodyUse,
  CreateHttpFilter,
  FilterAnswer,
  FilterCall,
  FilterConfig,
  FilterConnection,
  FilterData,
  FilterHeaders,
  FilterReply,
  FilterResult,
  FilterStatus,
  FilterTrailers,
  HttpFilter,
  HttpFilterContext,
  HttpFilterDefinition,
  HttpFilterFactory,
  HttpFilterStream,
  RequestHeaders,
  ResponseHeaders,
} from '../filter-modules/interface.ts';
export { createProxy } from './create-proxy.ts';
export { ConfigError } from './errors.ts';
export type {
  AdminAddress,
  Bootstrap,
  CloseOptions,
  DrainOptions,
  Fault,
  HistogramSpan,
  HistogramSummary,
  ListenerAddress,
  LogLevel,
  LogRecord,
  ProxyOptions,
  ProxyStats,
  WeirProxy as Proxy,
} from './types.ts';
