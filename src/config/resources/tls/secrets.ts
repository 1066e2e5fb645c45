// Secrets that TLS contexts ask for by name: those of the bootstrap, and those that come by discovery, now or later.

import type { SecretKind } from '../../../snapshot/index.ts';
import { quote } from '../../source/node.ts';
import { convertConfigSource } from '../config-source.ts';
import type { Conversion } from '../conversion.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { SdsSecretConfig, Secret } from '../messages.ts';
import type { FoundSecret, StaticSecrets } from './secret-stores.ts';

/** What was wanted of a secret. */
export interface FoundPart<Message> {
  readonly message: Message;
  readonly at: string;
  /** For what it consists of. */
  readonly conversion: Conversion;
}

/** @param at path of the list. */
export function staticSecrets(messages: readonly Secret[], at: string, faults: FaultSink): StaticSecrets {
  const secrets = new Map<string, FoundSecret>();
  for (const [index, message] of messages.entries()) {
    const own = { message, at: `${at}[${index}]` };
    if (secrets.has(message.name)) faults.error(`${own.at}.name`, `${quote(message.name)} names another secret, too`);
    else secrets.set(message.name, own);
  }
  return secrets;
}

/**
 * @param kind of the secret that is wanted.
 * @param isOverlay what it says is added to what the context says itself.
 * @returns undefined after a fault, and for a secret that has not come, which the trail tells.
 */
export function findSecret<Kind extends SecretKind>(
  config: SdsSecretConfig,
  kind: Kind,
  at: string,
  conversion: Conversion,
  isOverlay = false,
): FoundPart<NonNullable<Secret[Kind]>> | undefined {
  const isStatic = config.sds_config === null;
  const found = isStatic
    ? findStatic(config.name, at, conversion)
    : findDiscovered(config, kind, at, conversion, isOverlay);
  if (found === undefined) return undefined;
  const message = secretPart(found.message, kind);
  if (message === undefined) {
    conversion.faults.error(`${at}.name`, kindFault(found.message, kind));
    return undefined;
  }
  const trail = isStatic ? conversion.trail : conversion.trail?.ofSecret(config.name);
  return { message, at: isStatic ? `${found.at}.${kind}` : at, conversion: { ...conversion, trail } };
}

/** @returns undefined for a secret of another kind. */
export function secretPart<Kind extends SecretKind>(secret: Secret, kind: Kind): NonNullable<Secret[Kind]> | undefined {
  const message = secret.type === kind ? secret[kind] : null;
  return message === null ? undefined : (message as NonNullable<Secret[Kind]>);
}

export function kindFault({ name, type }: Secret, kind: SecretKind): string {
  return `secret ${quote(name)} is no ${kind}${type === undefined ? '' : `, but a ${type}`}`;
}

function findStatic(name: string, at: string, { secrets, faults }: Conversion): FoundSecret | undefined {
  const found = secrets?.get(name);
  if (found === undefined) faults.error(`${at}.name`, `secret ${quote(name)} does not exist`);
  return found;
}

function findDiscovered(
  { name, sds_config: config }: SdsSecretConfig,
  kind: SecretKind,
  at: string,
  conversion: Conversion,
  isOverlay: boolean,
): FoundSecret | undefined {
  const source = convertConfigSource(config!, `${at}.sds_config`, conversion);
  // The older interface has no rule for it.
  if (name === '') conversion.faults.error(`${at}.name`, 'is required: sds_config is asked by it');
  if (source === undefined || name === '') return undefined;
  const message = conversion.discoveredSecrets?.(name, source);
  conversion.trail?.noteSecret({ name, kind, isOverlay, source }, message === undefined);
  return message && { message, at };
}
