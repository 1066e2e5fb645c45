// Starts and stops what one part of the benchmark needs: the upstream and the contenders, each on a reserved port with
// a folder of its own. Everything ends with the scope, also when a part fails.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ReservedPort } from '../../test/support/reserved-port.ts';
import { type CertificateFiles, type Contender, type Protocol, TRAITS } from './contender.ts';
import type { PinnedProcess } from './pinned-process.ts';
import type { Entrant } from './rounds.ts';
import { startUpstream, type UpstreamPorts } from './upstream.ts';

const CERTIFICATE_DAYS = 30;

export class Arena implements AsyncDisposable {
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'weir-bench-'));
  readonly #processes: PinnedProcess[] = [];
  readonly #ports: ReservedPort[] = [];
  #upstreamPorts: UpstreamPorts | null = null;
  /** One for all contenders of this arena, made when the first of them asks. */
  #certificate: CertificateFiles | null = null;

  /** @param host address that it listens on. @param isSecured its HTTPS is wanted, too. */
  async startUpstream(cores: string, host = '127.0.0.1', isSecured = false): Promise<void> {
    const [http, http2, https] = [await this.reservePort(), await this.reservePort(), await this.reservePort()];
    this.#upstreamPorts = { http, http2, https };
    const certificate = isSecured ? this.#makeCertificate() : null;
    const folder = this.#subfolder('upstream');
    this.#processes.push(await startUpstream(cores, folder, this.#upstreamPorts, host, certificate));
  }

  async enter(contender: Contender, protocol: Protocol, cores: string, workers = 1): Promise<Entrant> {
    const port = await this.reservePort();
    const folder = this.#subfolder(contender.name.replaceAll('/', '-'));
    const { isTls, upstream } = TRAITS[protocol];
    const certificate = isTls ? this.#makeCertificate() : null;
    const upstreamPort = this.#upstreamPorts![upstream];
    const task = { protocol, port, upstreamPort, certificate, cores, workers, folder };
    const process = await contender.start(task);
    this.#processes.push(process);
    return { name: contender.name, process, port };
  }

  /** For what else speaks TLS here. */
  get certificate(): CertificateFiles {
    return this.#makeCertificate();
  }

  /** Nobody else's while this arena stands. */
  async reservePort(): Promise<number> {
    const reserved = await ReservedPort.take();
    this.#ports.push(reserved);
    return reserved.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()));
    await Promise.all(this.#ports.map((port) => port[Symbol.asyncDispose]()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Of ECDSA over P-256, signed by itself. */
  #makeCertificate(): CertificateFiles {
    if (this.#certificate !== null) return this.#certificate;
    const [certificate, key, both] = ['certificate', 'key', 'both'].map((name) =>
      path.join(this.folder, `${name}.pem`),
    );
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', CERTIFICATE_DAYS];
    const names = ['-subj', '/CN=bench', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const args = ['req', ...kind, ...names, '-keyout', key!, '-out', certificate!].map(String);
    execFileSync('openssl', args, { stdio: 'pipe' });
    writeFileSync(both!, readFileSync(certificate!, 'utf8') + readFileSync(key!, 'utf8'));
    this.#certificate = { certificate: certificate!, key: key!, both: both! };
    return this.#certificate;
  }

  #subfolder(name: string): string {
    const folder = path.join(this.folder, `${this.#processes.length}-${name}`);
    mkdirSync(folder);
    return folder;
  }
}
