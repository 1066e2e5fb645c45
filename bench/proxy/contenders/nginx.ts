// nginx with the same header work. Four traps are avoided here: a proxy_set_header inside a location drops the inherited
// ones, and with them `Connection ""`, without which every request opens an upstream connection; bodies of requests are
// spooled to disk unless buffering is off; long responses are, unless the temporary file may have no size; connections
// are closed after 1000 requests by default.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type CertificateFiles, type Contender, type ProxyTask, SAME_WORK, TRAITS } from '../contender.ts';
import { programVersion } from '../installed.ts';
import { PinnedProcess } from '../pinned-process.ts';

const MANY_REQUESTS = 1_000_000_000;

export const nginx: Contender = {
  name: 'nginx',
  absence: 'nginx is not installed (Debian: nginx-light)',
  version: nginxVersion,
  start: (task) => startNginx(task.cores, task.folder, task.port, proxyConfig(task), task.workers),
};

export function nginxVersion(): string | undefined {
  return programVersion('nginx', '-v', /nginx\/(\S+)/);
}

/** Runs one nginx in the foreground. @param http what goes into its http block. */
export function startNginx(
  cores: string,
  folder: string,
  port: number,
  http: string,
  workers: number,
): Promise<PinnedProcess> {
  const file = path.join(folder, 'nginx.conf');
  writeFileSync(file, mainConfig(folder, http, workers));
  return PinnedProcess.start(cores, ['nginx', '-p', folder, '-c', file, '-e', path.join(folder, 'error.log')], port);
}

function mainConfig(folder: string, http: string, workers: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
daemon off;
# A single worker needs no master: the process that is measured is the one that works.
master_process ${workers > 1 ? 'on' : 'off'};
worker_processes ${workers};
pid ${folder}/nginx.pid;
error_log ${folder}/error.log error;
events { worker_connections 15000; }
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  keepalive_requests ${MANY_REQUESTS};
  keepalive_timeout 1h;
  tcp_nodelay on;
${http}
}
`;
}

/** This nginx knows TLS 1.3 and would not speak it by itself. */
function tlsConfig({ certificate, key }: CertificateFiles): string {
  return `ssl_certificate ${certificate}; ssl_certificate_key ${key}; ssl_protocols TLSv1.2 TLSv1.3;`;
}

function proxyConfig({ protocol, port, upstreamPort, certificate, workers }: ProxyTask): string {
  const { clientsSpeakHttp2, upstream } = TRAITS[protocol];
  const kinds = [
    certificate === null ? '' : ' ssl',
    clientsSpeakHttp2 ? ' http2' : '',
    workers > 1 ? ' reuseport' : '',
  ];
  const tls = certificate === null ? '' : tlsConfig(certificate);
  return `
  upstream backend {
    server 127.0.0.1:${upstreamPort};
    # At least as many as requests at a time, or every request beyond them opens a connection.
    keepalive 2048;
    keepalive_requests ${MANY_REQUESTS};
    keepalive_timeout 1h;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096${kinds.join('')};
    ${tls}
    client_max_body_size 0;
    location / {
      proxy_pass ${upstream === 'https' ? 'https' : 'http'}://backend;
      proxy_ssl_protocols TLSv1.2 TLSv1.3;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_max_temp_file_size 0;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Request-Id $request_id;
      proxy_set_header X-Internal true;
      proxy_set_header X-Expected-Timeout-Ms ${SAME_WORK.expectedTimeoutMs};
      proxy_set_header Via "1.1 ${SAME_WORK.via}";
      add_header X-Service-Time $upstream_response_time;
      add_header Via "1.1 ${SAME_WORK.via}";
    }
  }`;
}
