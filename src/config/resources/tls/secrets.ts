// Secrets that TLS contexts ask for by name: those of the bootstrap, and those in files that hold a list of them.

import { FaultList } from '../../fault-list.ts';
import { loadMessage } from '../../proto/load-message.ts';
import { protoSchema } from '../../proto/root.ts';
import { UnknownFieldPolicy } from '../../proto/unknown-fields.ts';
import { quote } from '../../source/node.ts';
import type { Conversion } from '../conversion.ts';
import { openExtension } from '../extension.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { DiscoveryResponse, SdsSecretConfig, Secret } from '../messages.ts';

const DISCOVERY_RESPONSE = 'proxy.service.discovery.v3.DiscoveryResponse';
const SECRET = 'proxy.extensions.transport_sockets.tls.v3.Secret';

export interface FoundSecret {
  readonly message: Secret;
  /** Path of the secret where it stands in the bootstrap; of what asks for it where it stands elsewhere. */
  readonly at: string;
}

/** What was wanted of a secret. */
export interface FoundPart<Message> {
  readonly message: Message;
  readonly at: string;
  /** For what it consists of. */
  readonly conversion: Conversion;
}

/** Those of the bootstrap, by name. */
export type StaticSecrets = ReadonlyMap<string, FoundSecret>;

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

/** @param type the kind of secret that is wanted. @returns undefined after a fault. */
export function findSecret<Type extends NonNullable<Secret['type']>>(
  config: SdsSecretConfig,
  type: Type,
  at: string,
  conversion: Conversion,
): FoundPart<NonNullable<Secret[Type]>> | undefined {
  const isStatic = config.sds_config === null;
  const found = isStatic ? findStatic(config.name, at, conversion) : findInFile(config, at, conversion);
  if (found === undefined) return undefined;
  const message = found.message[type];
  if (found.message.type === type && message !== null) {
    const isOwn = found.at !== at;
    const trail = isStatic ? conversion.trail : conversion.trail?.ofSecret(config.name);
    return {
      message: message as NonNullable<Secret[Type]>,
      at: isOwn ? `${found.at}.${type}` : at,
      conversion: { ...conversion, trail },
    };
  }
  conversion.faults.error(`${at}.name`, `secret ${quote(config.name)} is no ${type}`);
  return undefined;
}

function findStatic(name: string, at: string, { secrets, faults }: Conversion): FoundSecret | undefined {
  const found = secrets?.get(name);
  if (found === undefined) faults.error(`${at}.name`, `secret ${quote(name)} does not exist`);
  return found;
}

function findInFile(
  { name, sds_config }: SdsSecretConfig,
  at: string,
  { faults, trail }: Conversion,
): FoundSecret | undefined {
  const path = sds_config?.path_config_source?.path ?? sds_config?.path ?? '';
  // Sources other than files have been refused by the support table.
  if (path === '') return undefined;
  trail?.noteSecret(path, name, sds_config?.path_config_source?.watched_directory ?? null);
  const list = new FaultList();
  const type = protoSchema().messageType(DISCOVERY_RESPONSE);
  const options = { faults: list, unknownFields: new UnknownFieldPolicy('reject') };
  const loaded = loadMessage(type, { configPath: path, configYaml: '' }, options);
  const fault = list.all.find(({ severity }) => severity === 'error');
  if (loaded === undefined || fault !== undefined) {
    faults.error(`${at}.sds_config`, `${quote(path)} cannot be used: ${fault?.message ?? 'it is empty'}`);
    return undefined;
  }
  const { resources } = loaded.message as unknown as DiscoveryResponse;
  for (const resource of resources) {
    const opened = openExtension(resource);
    if (opened?.typeName !== SECRET) continue;
    const message = opened.message as Secret;
    if (message.name === name) return { message, at };
  }
  faults.error(`${at}.name`, `${quote(path)} holds no secret ${quote(name)}`);
  return undefined;
}
