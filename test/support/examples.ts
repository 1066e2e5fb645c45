// The configurations of examples/ as they stand, but for ports and for the places of their keys.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { startWeir, type WeirProcess } from './weir-process.ts';

const EXAMPLES = path.join(import.meta.dirname, '../../examples');
/** Where the examples keep keys. */
const KEY_FOLDER = '/etc/weir';

/**
 * @param ports in place of those in the file; the system chooses the others.
 * @param times what is too long for a test, and what stands there instead. @param args beside the configuration.
 */
export async function startExample(
  name: string,
  ports: Readonly<Record<string, number>>,
  keyFolder = KEY_FOLDER,
  times: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Promise<WeirProcess> {
  let configYaml = readFileSync(path.join(EXAMPLES, name), 'utf8')
    .replaceAll(/port_value: (\d+)/g, (_all, port: string) => `port_value: ${ports[port] ?? 0}`)
    .replaceAll(KEY_FOLDER, keyFolder)
    .replaceAll('0.0.0.0', '127.0.0.1');
  for (const [long, short] of Object.entries(times)) {
    if (!configYaml.includes(long)) throw new Error(`${name} does not say ${long}`);
    configYaml = configYaml.replace(long, short);
  }
  return await startWeir({ configYaml, args });
}

/** Starts a server, which ends with the test. @returns its port. */
export async function portOf(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}
