// TlsParameters messages: what a handshake may agree on. OpenSSL is asked about every name, one by one.

import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { TlsSettings, TlsVersion } from '../../../snapshot/index.ts';
import { TlsParameters_TlsProtocol as Protocol } from '../../proto/generated/enums.ts';
import { quote } from '../../source/node.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { TlsParameters } from '../messages.ts';

export type ConvertedParameters = Pick<
  TlsSettings,
  'minVersion' | 'maxVersion' | 'ciphers' | 'curves' | 'signatureAlgorithms'
>;

/** In ascending order; by number behind AUTO. */
const VERSIONS: readonly TlsVersion[] = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'];
/** Without it OpenSSL refuses the older versions, whatever is asked for. */
const OLD_VERSIONS_LEVEL = '@SECLEVEL=0';
const NEWEST: TlsVersion = 'TLSv1.3';

/** @param defaultMax of the side that speaks. */
export function convertParameters(
  message: TlsParameters | null,
  at: string,
  faults: FaultSink,
  defaultMax: TlsVersion = NEWEST,
): ConvertedParameters {
  const minVersion = versionOf(message?.tls_minimum_protocol_version) ?? 'TLSv1.2';
  const named = versionOf(message?.tls_maximum_protocol_version);
  const maxVersion = named ?? later(defaultMax, minVersion);
  if (VERSIONS.indexOf(minVersion) > VERSIONS.indexOf(maxVersion)) {
    faults.error(`${at}.tls_minimum_protocol_version`, `${minVersion} is newer than the newest allowed, ${maxVersion}`);
  }
  const isOld = minVersion === 'TLSv1' || minVersion === 'TLSv1.1';
  const ciphers = (message?.cipher_suites ?? []).flatMap(splitGroup);
  checkNames(ciphers, `${at}.cipher_suites`, 'a cipher suite', faults, (name) => cipherOptions(name));
  checkNames(message?.ecdh_curves ?? [], `${at}.ecdh_curves`, 'a curve', faults, (ecdhCurve) => ({ ecdhCurve }));
  const algorithms = message?.signature_algorithms ?? [];
  checkNames(algorithms, `${at}.signature_algorithms`, 'a signature algorithm', faults, (sigalgs) => ({ sigalgs }));
  return {
    minVersion,
    maxVersion,
    ciphers: (isOld ? [...(ciphers.length === 0 ? ['DEFAULT'] : ciphers), OLD_VERSIONS_LEVEL] : ciphers).join(':'),
    curves: (message?.ecdh_curves ?? []).join(':'),
    signatureAlgorithms: algorithms.join(':'),
  };
}

function versionOf(number = Protocol.TLS_AUTO as number): TlsVersion | undefined {
  return VERSIONS[number - 1];
}

function later(a: TlsVersion, b: TlsVersion): TlsVersion {
  return VERSIONS.indexOf(a) < VERSIONS.indexOf(b) ? b : a;
}

/** Suites between brackets are equals for BoringSSL; here the one named first goes first. */
function splitGroup(text: string): string[] {
  return text.replace(/^\[(.*)\]$/, '$1').split(/[|:]/);
}

/** What is excluded cannot stand alone. */
function cipherOptions(name: string): SecureContextOptions {
  return { ciphers: /^[!-]/.test(name) ? `ALL:${name}` : `${name}:${OLD_VERSIONS_LEVEL}` };
}

function checkNames(
  names: readonly string[],
  at: string,
  kind: string,
  faults: FaultSink,
  optionsOf: (name: string) => SecureContextOptions,
): void {
  for (const [index, name] of names.entries()) {
    // A list in one text would be taken as a list, and hide an unknown name in it.
    if (/^[\w!+-]+$/.test(name) && isTaken(optionsOf(name))) continue;
    faults.error(`${at}[${index}]`, `${quote(name)} is not ${kind} that this build knows`);
  }
}

function isTaken(options: SecureContextOptions): boolean {
  try {
    createSecureContext({ ...options, ca: [] });
    return true;
  } catch {
    return false;
  }
}
