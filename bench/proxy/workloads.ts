// What is measured, and what must be reached: ratios of weir to a peer within one run.

import type { Protocol } from './contender.ts';
import { GRPC_PATH } from './grpc-call.ts';

export interface Workload {
  readonly name: string;
  readonly title: string;
  readonly protocol: Protocol;
  readonly path: '/small' | '/16k' | '/1m' | '/post' | typeof GRPC_PATH;
  readonly connections: number;
  /** Of each connection at a time, where clients speak HTTP/2. */
  readonly streams?: number | undefined;
  readonly bodyBytes?: number | undefined;
  readonly newConnections?: boolean | undefined;
  /** Requests per second over all connections; without it as many as go. */
  readonly fixedRate?: number;
  /**
   * By contender: the least ratio of requests per second, or the greatest one of p99 where the rate is fixed. Null
   * takes part without a bar.
   */
  readonly bars: Readonly<Record<string, number | null>>;
}

const KB = 1000;

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'small-get',
    title: 'small GET, 64 keep-alive connections',
    protocol: 'http',
    path: '/small',
    connections: 64,
    bars: { nginx: 0.8, haproxy: 0.8, 'http-proxy-3': 4, '@fastify/http-proxy': 4 },
  },
  {
    name: 'get-16k',
    title: '16 KB responses, 64 connections',
    protocol: 'http',
    path: '/16k',
    connections: 64,
    bars: { nginx: 0.8, haproxy: 0.9 },
  },
  {
    name: 'get-1m',
    title: '1 MB responses, 16 connections',
    protocol: 'http',
    path: '/1m',
    connections: 16,
    bars: { nginx: 0.75, haproxy: 0.8 },
  },
  {
    name: 'post-100k',
    title: 'POST 100 KB, 32 connections',
    protocol: 'http',
    path: '/post',
    connections: 32,
    bodyBytes: 100 * KB,
    bars: { nginx: 0.5, haproxy: 0.7 },
  },
  {
    name: 'new-connection',
    title: 'new connection per request, 32 at a time',
    protocol: 'http',
    path: '/small',
    connections: 32,
    newConnections: true,
    bars: { nginx: null, haproxy: null },
  },
  {
    name: 'tcp-1m',
    title: 'TCP proxy, 1 MB transfers, 16 connections',
    protocol: 'tcp',
    path: '/1m',
    connections: 16,
    bars: { haproxy: 1 },
  },
  {
    name: 'tcp-small',
    title: 'TCP proxy, small messages, 64 connections',
    protocol: 'tcp',
    path: '/small',
    connections: 64,
    bars: { haproxy: 0.8 },
  },
  {
    name: 'fixed-rate',
    title: 'small GET at a fixed 15,000 requests/s, 64 connections',
    protocol: 'http',
    path: '/small',
    connections: 64,
    fixedRate: 15_000,
    bars: { nginx: 1.1, haproxy: 1.1 },
  },
  {
    name: 'h2-small',
    title: 'HTTP/2, small GET, 32 connections of 32 streams',
    protocol: 'http2',
    path: '/small',
    connections: 32,
    streams: 32,
    bars: { nginx: 1, haproxy: null },
  },
  {
    name: 'h2-16k',
    title: 'HTTP/2, 16 KB responses, 32 connections of 32 streams',
    protocol: 'http2',
    path: '/16k',
    connections: 32,
    streams: 32,
    bars: { nginx: 0.9, haproxy: null },
  },
  {
    name: 'h2-256x1',
    title: 'HTTP/2, small GET, 256 connections of one stream',
    protocol: 'http2',
    path: '/small',
    connections: 256,
    streams: 1,
    bars: { nginx: 0.8, haproxy: null },
  },
  {
    name: 'h2-tls-256x1',
    title: 'HTTP/2 over TLS, small GET, 256 connections of one stream',
    protocol: 'http2-tls',
    path: '/small',
    connections: 256,
    streams: 1,
    bars: { nginx: 0.7, haproxy: null },
  },
  {
    name: 'h1-to-h2',
    title: 'small GET, 64 HTTP/1 connections, upstream of HTTP/2',
    protocol: 'http-to-http2',
    path: '/small',
    connections: 64,
    bars: { haproxy: 0.85 },
  },
  {
    name: 'h1-to-tls',
    title: 'small GET, 64 HTTP/1 connections, upstream over TLS',
    protocol: 'http-to-https',
    path: '/small',
    connections: 64,
    bars: { nginx: 0.8, haproxy: null },
  },
  {
    name: 'h1-to-tls-16k',
    title: '16 KB responses, 64 HTTP/1 connections, upstream over TLS',
    protocol: 'http-to-https',
    path: '/16k',
    connections: 64,
    bars: { nginx: 0.8, haproxy: null },
  },
  {
    name: 'grpc',
    title: 'gRPC, unary calls, 32 connections of 32 streams, upstream of HTTP/2',
    protocol: 'http2-to-http2',
    path: GRPC_PATH,
    connections: 32,
    streams: 32,
    bars: { haproxy: 0.9 },
  },
];
