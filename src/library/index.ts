// The package export `weir-proxy`: the proxy in your own process. Reference: docs/library.md.

export { WeirError } from '../base/errors.ts';
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
