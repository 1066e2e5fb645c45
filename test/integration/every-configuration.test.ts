// Every configuration that the tests of the loader take, held against what else says whether it is one: the schema for editors,
// and a proxy that serves by it. A process of its own runs those tests once, and notes each configuration.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { load as readYaml } from 'js-yaml';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import type { Bootstrap } from '../../src/library/index.ts';
import { load } from '../support/bootstrap.ts';
import { type ExitResult, runProgram } from '../support/child-process.ts';
import { createProxy } from '../support/embedded.ts';
import { runWeir } from '../support/weir-process.ts';

const CONFIG_TESTS = path.join(PACKAGE_ROOT, 'test/unit/config');
/**
 * Of the loader. Mutants make configurations that are taken although no editor should let them pass, such as numbers with
 * blanks.
 */
const WITH_CONFIGURATIONS = /^(?:resources|bootstrap|support)(?!.*(?:mutants|schema\.test)).*\.test\.ts$/;
const FEWEST = 300;
/** Fields that name a file to write to, or a socket. */
const WRITTEN = new Set(['path', 'access_log_path', 'event_log_path', 'profile_path']);
const OPTIONS = { concurrency: 1, log: () => {} };

const folder = mkdtempSync(path.join(tmpdir(), 'weir-every-'));
after(() => rmSync(folder, { recursive: true }));

describe('every configuration that the loader takes', () => {
  let collected: ExitResult;
  let configurations: readonly Bootstrap[];

  before(async () => {
    const files = readdirSync(CONFIG_TESTS, { recursive: true, encoding: 'utf8' })
      .filter((file) => WITH_CONFIGURATIONS.test(file))
      .map((file) => path.join(CONFIG_TESTS, file));
    const flags = ['--disable-warning=ExperimentalWarning', '--test', '--test-isolation=none', '--test-reporter=tap'];
    const list = path.join(folder, 'configurations');
    // The runner takes files for parts of the run around it otherwise.
    const env = { WEIR_TEST_SCHEMA: '1', WEIR_TEST_CONFIGURATIONS: list, NODE_TEST_CONTEXT: '' };
    collected = await runProgram(process.execPath, [...flags, ...files], { env });
    const texts = new Set(readFileSync(list, 'utf8').trim().split('\n'));
    configurations = [...texts].map((line) => reachable(readYaml(JSON.parse(line))) as Bootstrap);
  });

  it('is one by the schema for editors', () => {
    const { code, stdout } = collected;
    const faults = stdout.split('\n').filter((line) => /not ok|not in the schema/.test(line));
    assert.equal(code, 0, faults.join('\n'));
    assert.ok(Number(/^# pass (\d+)$/m.exec(stdout)?.[1]) > FEWEST, stdout.slice(-500));
  });

  it('is served', async () => {
    assert.ok(configurations.length > FEWEST);
    // Most can follow one another in one proxy, which is much quicker; what begins with a proxy gets one of its own.
    const proxy = await createProxy({}, OPTIONS);
    const differing: string[] = [];
    try {
      for (const configuration of configurations) {
        const reason = await proxy.applyBootstrap(configuration).then(() => undefined, codeAndText);
        const refusal = reason?.startsWith('WEIR_CANNOT_CHANGE') ? await served(configuration) : reason;
        if (refusal !== undefined && isGood(configuration) && !isOfTheSystem(refusal))
          differing.push(`${refusal}\n${JSON.stringify(configuration)}`);
      }
    } finally {
      await proxy.close({ graceMs: 0 });
    }
    assert.deepEqual(differing, []);
  });

  it('is good for --mode validate, as many of them tried as take no long time', async () => {
    const file = path.join(folder, 'bootstrap.json');
    for (const configuration of configurations.filter((_, at) => at % 100 === 0)) {
      writeFileSync(file, JSON.stringify(configuration));
      const { code, stderr } = await runWeir(['--mode', 'validate', '-c', file]);
      assert.equal(code, isGood(configuration) ? 0 : 1, stderr);
    }
  });
});

/** By the loader, as `--mode validate` asks it. Files that a configuration names may be gone by now. */
function isGood(configuration: Bootstrap): boolean {
  return load(JSON.stringify(configuration)).bootstrap !== undefined;
}

async function served(configuration: Bootstrap): Promise<string | undefined> {
  try {
    const proxy = await createProxy(configuration, OPTIONS);
    await proxy.close({ graceMs: 0 });
    return undefined;
  } catch (error) {
    return codeAndText(error);
  }
}

function codeAndText(error: unknown): string {
  const { code, message } = error as { readonly code?: string; readonly message?: string };
  return `${code} ${message}`;
}

/** Nobody can know without asking for the socket, and to validate asks for none. */
function isOfTheSystem(refusal: string): boolean {
  return /^WEIR_LISTEN_FAILED .*: (?:setsockopt|bind|listen) E[A-Z]+/.test(refusal);
}

/** With ports that the system chooses, and with sockets and files in a folder of this test. */
function reachable(configuration: unknown): unknown {
  let paths = 0;
  const own = (): string => path.join(folder, `file-${paths++}`);
  const replaced = (key: string, value: unknown): unknown => {
    const isWritten = WRITTEN.has(key) && typeof value === 'string' && /^[^@]/.test(value);
    if (isWritten) return own();
    return key === 'listeners' || key === 'admin' ? atAnyPort(value) : value;
  };
  return JSON.parse(JSON.stringify(configuration ?? {}), replaced);
}

function atAnyPort(part: unknown): unknown {
  return JSON.parse(JSON.stringify(part), (key: string, value: unknown) =>
    key === 'port_value' || key === 'portValue' ? 0 : value,
  );
}
