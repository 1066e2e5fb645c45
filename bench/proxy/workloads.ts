// What is measured, and what must be reached: ratios of weir to a peer within one run.

import type { Protocol } from './contender.ts';

export interface Workload {
  readonly name: string;
  readonly title: string;
  readonly protocol: Protocol;
  readonly path: '/small' | '/16k' | '/1m' | '/post';
  readonly connections: number;
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
];
