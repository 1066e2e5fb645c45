// Certificates that tests make for themselves, by openssl, in a folder of their own.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from './child-process.ts';

export interface CertificateOptions {
  /** `ec` when absent. */
  readonly key?: 'ec' | 'rsa';
  /** As openssl writes them, `DNS:a.example,URI:spiffe://x`; none when absent. */
  readonly altNames?: string;
  /** Common name; that of the file when absent. */
  readonly name?: string;
  /** Signed by this one instead of itself. */
  readonly issuer?: TestCertificate;
  /** 30 when absent; negative for one that has expired. */
  readonly days?: number;
  readonly password?: string;
  readonly isAuthority?: boolean;
}

export interface TestCertificate {
  readonly certificatePath: string;
  readonly keyPath: string;
  readonly certificate: string;
  readonly key: string;
}

const KEY_OPTIONS = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  rsa: ['-newkey', 'rsa:2048'],
} as const;

/** A folder of certificates, gone with the scope that made it. */
export class CertificateFolder implements Disposable {
  readonly path: string;

  constructor() {
    this.path = mkdtempSync(join(tmpdir(), 'weir-certificates-'));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  /** @param name of the files, without extension; files of that name are replaced. */
  async make(name: string, options: CertificateOptions = {}): Promise<TestCertificate> {
    const { key = 'ec', altNames, issuer, days = 30, password, isAuthority = false } = options;
    const certificatePath = join(this.path, `${name}.pem`);
    const keyPath = join(this.path, `${name}.key`);
    const request = join(this.path, `${name}.csr`);
    const extensions = join(this.path, `${name}.cnf`);
    await this.openssl([
      ...['req', '-new', '-subj', `/CN=${options.name ?? name}`, ...KEY_OPTIONS[key], '-keyout', keyPath],
      ...(password === undefined ? ['-nodes'] : ['-passout', `pass:${password}`]),
      ...['-out', request],
    ]);
    const lines = [`basicConstraints=critical,CA:${isAuthority ? 'TRUE' : 'FALSE'}`];
    if (altNames !== undefined) lines.push(`subjectAltName=${altNames}`);
    writeFileSync(extensions, `${lines.join('\n')}\n`);
    const signer =
      issuer === undefined
        ? ['-signkey', keyPath, ...(password === undefined ? [] : ['-passin', `pass:${password}`])]
        : ['-CA', issuer.certificatePath, '-CAkey', issuer.keyPath, '-CAcreateserial'];
    await this.openssl([
      ...['x509', '-req', '-in', request, '-days', String(days), '-extfile', extensions, ...signer],
      ...['-out', certificatePath],
    ]);
    return { certificatePath, keyPath, certificate: read(certificatePath), key: read(keyPath) };
  }

  /** @returns the path of a PKCS#12 bundle. */
  async bundle(name: string, { certificatePath, keyPath }: TestCertificate, password: string): Promise<string> {
    const path = join(this.path, `${name}.p12`);
    await this.openssl([
      ...['pkcs12', '-export', '-in', certificatePath, '-inkey', keyPath],
      ...['-out', path, '-passout', `pass:${password}`],
    ]);
    return path;
  }

  /** @returns the path of a list of certificates that their issuer has taken back. */
  async revocationList(name: string, issuer: TestCertificate, revoked: readonly TestCertificate[]): Promise<string> {
    const path = join(this.path, `${name}.crl`);
    const settings = join(this.path, `${name}.ca`);
    writeFileSync(join(this.path, `${name}.index`), '');
    const lines = [`database=${this.path}/${name}.index`, 'default_md=sha256', 'default_crl_days=30'];
    writeFileSync(settings, ['[ca]', 'default_ca=own', '[own]', ...lines, ''].join('\n'));
    const ca = ['ca', '-config', settings, '-cert', issuer.certificatePath, '-keyfile', issuer.keyPath];
    for (const { certificatePath } of revoked) await this.openssl([...ca, '-revoke', certificatePath]);
    await this.openssl([...ca, '-gencrl', '-out', path]);
    return path;
  }

  /** @returns the path of an OCSP response in DER that says nothing against the certificate for a week. */
  async ocspResponse(name: string, { certificatePath }: TestCertificate, issuer: TestCertificate): Promise<string> {
    const path = join(this.path, `${name}.ocsp`);
    const request = join(this.path, `${name}.request`);
    const index = join(this.path, `${name}.index`);
    const serial = (await this.openssl(['x509', '-in', certificatePath, '-serial', '-noout']))
      .trim()
      .slice('serial='.length);
    writeFileSync(index, `V\t400101000000Z\t\t${serial}\tunknown\t/CN=${name}\n`);
    const authority = ['-CA', issuer.certificatePath];
    await this.openssl(['ocsp', '-issuer', issuer.certificatePath, '-cert', certificatePath, '-reqout', request]);
    await this.openssl([
      ...['ocsp', '-index', index, ...authority, '-rsigner', issuer.certificatePath, '-rkey', issuer.keyPath],
      ...['-reqin', request, '-respout', path, '-ndays', '7'],
    ]);
    return path;
  }

  /** @returns what it writes. */
  async openssl(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runProgram('openssl', args, { cwd: this.path });
    assert.equal(code, 0, `openssl ${args.join(' ')}: ${stderr}`);
    return stdout;
  }
}

function read(path: string): string {
  return readFileSync(path, 'utf8');
}
