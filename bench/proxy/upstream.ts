// What stands behind the proxies: nginx with fixed answers, or a small Node server where there is no nginx, which is
// slower and may then be the limit; the table says so by the proxy's share of its core.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { CertificateFiles, UpstreamSide } from './contender.ts';
import { nginxVersion, startNginx } from './contenders/nginx.ts';
import { GRPC_MESSAGE, GRPC_PATH } from './grpc-call.ts';
import { PinnedProcess } from './pinned-process.ts';

const KIB = 1024;

/** The answers, by path. /post takes any body and says ok. */
export const ANSWER_BYTES = { '/small': 12, '/16k': 16 * KIB, '/1m': KIB * KIB, '/post': 3 } as const;
const FILES = ['/16k', '/1m'] as const;
/** Not below the root. */
const GRPC_FILE = 'grpc-message';

/** Of the same answers over HTTP/1, and over HTTP/2 with prior knowledge and HTTP/1 over TLS, which only nginx has. */
export type UpstreamPorts = Readonly<Record<UpstreamSide, number>>;

/** @param certificate of HTTPS; null for none of that. */
export async function startUpstream(
  cores: string,
  folder: string,
  ports: UpstreamPorts,
  host: string,
  certificate: CertificateFiles | null,
): Promise<PinnedProcess> {
  const port = ports.http;
  const root = path.join(folder, 'files');
  mkdirSync(root, { recursive: true });
  for (const name of FILES) writeFileSync(path.join(root, name), Buffer.alloc(ANSWER_BYTES[name], 'weir '));
  const message = path.join(folder, GRPC_FILE);
  writeFileSync(message, GRPC_MESSAGE);
  if (nginxVersion() !== undefined) {
    return startNginx(cores, folder, port, answers(host, ports, certificate, root, message), 1);
  }
  process.stdout.write('nginx is not installed: the upstream is a Node server, which may limit what is measured\n');
  const script = path.join(import.meta.dirname, 'upstream-server.ts');
  return PinnedProcess.start(cores, [process.execPath, script, String(port), host], port);
}

function answers(
  host: string,
  ports: UpstreamPorts,
  certificate: CertificateFiles | null,
  root: string,
  message: string,
): string {
  return `
  sendfile on;
  # Head and file in one piece, as servers send that have both in memory.
  tcp_nopush on;
  open_file_cache max=16 inactive=1h;
  upstream self {
    server 127.0.0.1:${ports.http};
    keepalive 64;
    keepalive_requests 1000000000;
  }
  server {
    listen ${host}:${ports.http} backlog=4096;
    listen ${host}:${ports.http2} http2 backlog=4096;
    ${certificate === null ? '' : secured(`${host}:${ports.https}`, certificate)}
    root ${root};
    default_type text/plain;
    client_max_body_size 0;
    client_body_buffer_size 256k;
    location = /small { return 200 "hello world\n"; }
    # A bare return would answer before the body has come; passing the request on waits for it.
    location = /post {
      proxy_pass http://self/taken;
      proxy_http_version 1.1;
      proxy_pass_request_body off;
      proxy_set_header Connection "";
      proxy_set_header Content-Length "";
    }
    location = /taken { return 200 "ok\n"; }
    # A service of gRPC: the mirror waits for the call's message, a file may not be posted to, so that the error's page is
    # the answer, and its status comes behind it.
    location = ${GRPC_PATH} {
      alias ${message};
      mirror /message-has-come;
      error_page 405 =200 /grpc-answer;
    }
    location = /message-has-come { internal; return 204; }
    location = /grpc-answer {
      internal;
      alias ${message};
      default_type application/grpc;
      # Or head and message would wait for more of them.
      sendfile off;
      tcp_nopush off;
      # What no service would say.
      etag off;
      max_ranges 0;
      add_header Last-Modified "";
      add_trailer grpc-status 0;
    }
  }`;
}

/** One version and one cipher, so that every proxy does the same work. */
function secured(address: string, { certificate, key }: CertificateFiles): string {
  return `listen ${address} ssl backlog=4096;
    ssl_certificate ${certificate};
    ssl_certificate_key ${key};
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;`;
}
