// Secrets as a management server tells them, who asks for them, and what a proxy shows of them.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import type { JsonObject } from './bootstrap.ts';
import type { TestCertificate } from './certificates.ts';
import type { ControlPlane } from './control-plane.ts';
import { bootstrap, FORMS, type Form, ofForm } from './discovered-proxy.ts';
import { untilEqual } from './eventually.ts';
import { shownSubject } from './tls-client.ts';
import { tlsListener, tlsMessage } from './tls-config.ts';
import type { WeirProcess } from './weir-process.ts';

const [STATE] = FORMS as [Form];
/** A client that believes any server. */
export const ANYBODY = { rejectUnauthorized: false };

/** As it goes over the wire: nothing of it in files. */
export function inline({ certificate, key }: Pick<TestCertificate, 'certificate' | 'key'>): JsonObject {
  return { certificate_chain: { inline_string: certificate }, private_key: { inline_string: key } };
}

export function secret(name: string, fields: JsonObject): JsonObject {
  return { name, ...fields };
}

export function certified(name: string, certificate: TestCertificate): JsonObject {
  return secret(name, { tls_certificate: inline(certificate) });
}

export function trusting(name: string, authority: TestCertificate): JsonObject {
  return secret(name, { validation_context: { trusted_ca: { inline_string: authority.certificate } } });
}

export function from(form: Form, name: string, fields: JsonObject = {}): JsonObject {
  return { name, sds_config: { ...ofForm(form), ...fields } };
}

export function secured(name: string, common: JsonObject, context: JsonObject = {}): JsonObject {
  return tlsListener(name, { common, context }) as JsonObject;
}

export function securely(common: JsonObject): JsonObject {
  const typed_config = tlsMessage('UpstreamTlsContext', { common_tls_context: common });
  return { transport_socket: { name: 'tls', typed_config } } as JsonObject;
}

export async function portOf(weir: WeirProcess, name: string): Promise<number> {
  return (await weir.listeners()).get(name)!.port;
}

/** In all workers: the kernel spreads connections over them. One that has none yet closes them. */
export async function untilShown(weir: WeirProcess, name: string, subject: string): Promise<void> {
  const port = await portOf(weir, name);
  const shown = async (): Promise<string> => {
    const shake = (): Promise<string> => shownSubject(port, ANYBODY).catch(() => 'none');
    const subjects = await Promise.all(Array.from({ length: 8 }, shake));
    return [...new Set(subjects)].join(', ');
  };
  await untilEqual(`CN=${subject}`, shown, `the certificate of ${name}`);
}

/** A line of the log, which may be on its way. */
export async function untilTold(weir: WeirProcess, text: string): Promise<void> {
  await untilEqual(true, () => weir.output.stderr.includes(text), text);
}

export interface DumpedSecret {
  readonly name: string;
  readonly version_info: string;
  readonly client_status: string;
  readonly secret: JsonObject;
  readonly error_state?: { readonly details: string; readonly version_info: string };
}

export async function dumped(weir: WeirProcess, state: 'active' | 'warming'): Promise<readonly DumpedSecret[]> {
  const text = await weir.admin(`/config_dump?resource=dynamic_${state}_secrets`).catch(() => '{}');
  return (JSON.parse(text) as { configs?: DumpedSecret[] }).configs ?? [];
}

/** Neither outputs nor what the server was told have a line of a key. */
export async function assertSecrecy(weir: WeirProcess, plane: ControlPlane, ...keys: readonly string[]): Promise<void> {
  const dumps = await Promise.all(['/config_dump', '/certs', '/init_dump', '/stats'].map((each) => weir.admin(each)));
  const told = [...dumps, weir.output.stderr, weir.output.stdout, JSON.stringify(plane.requests)].join('\n');
  for (const key of keys) {
    for (const line of key.split('\n').filter((each) => each.length > 20 && !each.startsWith('-----'))) {
      assert.ok(!told.includes(line), 'a line of a key');
    }
  }
}

export function stdoutLog(format: string): JsonObject {
  return {
    name: 'stdout',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
      log_format: { text_format_source: { inline_string: `${format}\n` } },
    },
  };
}

/** Nothing of it comes by discovery but secrets. */
export function withStatic(
  plane: ControlPlane,
  listeners: readonly object[],
  clusters: readonly JsonObject[] = [],
): string {
  const whole = JSON.parse(bootstrap(STATE, [plane])) as {
    dynamic_resources: { cds_config?: object; lds_config?: object };
    static_resources: { clusters: object[]; listeners?: object[] };
  };
  delete whole.dynamic_resources.cds_config;
  delete whole.dynamic_resources.lds_config;
  whole.static_resources.clusters.push(...clusters);
  whole.static_resources.listeners = [...listeners];
  return JSON.stringify(whole);
}

/** Answers with the common name of the client. @returns its port. */
export async function namingUpstream(t: TestContext, { certificate: cert, key }: TestCertificate): Promise<number> {
  const sockets = new Set<TLSSocket>();
  const answer = (socket: TLSSocket): void => {
    const name = socket.getPeerX509Certificate()?.subject.replace('CN=', '') ?? 'nobody';
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', () => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${name.length}\r\n\r\n${name}`));
  };
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, answer);
  server.on('tlsClientError', () => {});
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  return (server.address() as { port: number }).port;
}
