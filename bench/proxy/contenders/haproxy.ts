// HAProxy with the same header work; for TCP without any. It wants two descriptors for each of maxconn connections, or
// does not start; idle connections need one only, so it is told not to insist.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Contender, type ProxyTask, SAME_WORK, TRAITS, type UpstreamSide } from '../contender.ts';
import { programVersion } from '../installed.ts';
import { PinnedProcess } from '../pinned-process.ts';

/** More than any part of the benchmark opens. */
const MAX_CONNECTIONS = 11_000;

const SERVER_OPTIONS: Readonly<Record<UpstreamSide, string>> = {
  http: '',
  http2: ' proto h2',
  https: ' ssl verify none',
};

export const haproxy: Contender = {
  name: 'haproxy',
  absence: 'HAProxy is not installed (Debian: haproxy)',
  version: () => programVersion('haproxy', '-v', /version (\S+)/),
  start: (task) => {
    const file = path.join(task.folder, 'haproxy.cfg');
    writeFileSync(file, config(task));
    return PinnedProcess.start(task.cores, ['haproxy', '-db', '-q', '-f', file], task.port);
  },
};

function config(task: ProxyTask): string {
  const { clientsSpeakHttp2, upstream } = TRAITS[task.protocol];
  const isHttp = task.protocol !== 'tcp';
  return `
global
  maxconn ${MAX_CONNECTIONS}
  no strict-limits
  nbthread ${task.workers}
defaults
  mode ${isHttp ? 'http' : 'tcp'}
  timeout connect 1s
  timeout client 1h
  timeout server 1h
frontend bench
  bind 127.0.0.1:${task.port} backlog 4096 ${clientProtocol(task, clientsSpeakHttp2)}
${isHttp ? headerWork(task) : ''}
  default_backend upstream
backend upstream
${isHttp ? '  http-reuse always\n  option forwardfor' : ''}
  server one 127.0.0.1:${task.upstreamPort}${SERVER_OPTIONS[upstream]}
`;
}

function clientProtocol({ certificate }: ProxyTask, isHttp2: boolean): string {
  if (certificate !== null) return `ssl crt ${certificate.both} alpn ${isHttp2 ? 'h2,' : ''}http/1.1`;
  return isHttp2 ? 'proto h2' : '';
}

function headerWork({ certificate }: ProxyTask): string {
  return `
  http-request set-header x-forwarded-proto ${certificate === null ? 'http' : 'https'}
  http-request set-header x-request-id %[uuid()]
  http-request set-header x-internal true
  http-request set-header x-expected-timeout-ms ${SAME_WORK.expectedTimeoutMs}
  http-request add-header via "1.1 ${SAME_WORK.via}"
  http-response set-header server haproxy
  http-response set-header x-service-time 0
  http-response add-header via "1.1 ${SAME_WORK.via}"`;
}
