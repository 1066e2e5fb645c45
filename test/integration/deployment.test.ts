// What lies in deploy/: that it fits the program, itself, and what it is for. Neither a cluster nor a container is at hand here.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { loadAll, load as readYaml } from 'js-yaml';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { parseCommandLine, type ServerOptions } from '../../src/cli/index.ts';
import { type JsonObject, load } from '../support/bootstrap.ts';
import { type ExitResult, runProgram } from '../support/child-process.ts';
import { startWeir } from '../support/weir-process.ts';
import { unusedPort } from '../support/wire.ts';

const DEPLOY = path.join(PACKAGE_ROOT, 'deploy');
const dockerfile = readFileSync(path.join(DEPLOY, 'Dockerfile'), 'utf8');

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string };
  readonly tcpSocket?: { readonly port: string };
}

interface Container {
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Manifest {
  readonly kind: string;
  readonly data: { readonly 'weir.yaml': string };
  readonly spec: {
    readonly selector: { readonly matchLabels?: object };
    readonly ports: readonly { readonly targetPort: string }[];
    readonly template: {
      readonly metadata: { readonly labels: object; readonly annotations: Readonly<Record<string, string>> };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: { readonly runAsUser: number };
        readonly containers: readonly [Container];
        readonly volumes: readonly { readonly name: string; readonly configMap: { readonly name: string } }[];
      };
    };
  };
}

interface Listener {
  readonly name: string;
  readonly address: { readonly socket_address: { readonly port_value: number } };
}

interface Bootstrap {
  readonly static_resources: { readonly listeners: readonly Listener[] };
}

const manifests = loadAll(readFileSync(path.join(DEPLOY, 'kubernetes.yaml'), 'utf8')) as Manifest[];
const manifest = (kind: string): Manifest => manifests.find((one) => one.kind === kind)!;
const pod = manifest('Deployment').spec.template;
const [container] = pod.spec.containers;
const bootstrapText = manifest('ConfigMap').data['weir.yaml'];

/** Of one of Dockerfile's lists, `["weir", "-c"]`. */
function listOf(instruction: string): string[] {
  return JSON.parse(new RegExp(`^${instruction} .*?(\\[.*\\])$`, 'm').exec(dockerfile)![1]!);
}

function optionsOf(args: readonly string[]): ServerOptions {
  const outcome = parseCommandLine(args, { program: 'weir', version: '', hotRestartVersion: () => '' });
  assert.equal(outcome.kind, 'run', JSON.stringify(outcome));
  assert.ok(outcome.kind === 'run');
  assert.deepEqual(outcome.warnings, []);
  return outcome.options;
}

describe('the container', () => {
  it('is made of what there is, and starts the program with options of its', () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(\S+) /gm)].map(([, source]) => source!);
    assert.deepEqual(copied, ['.', 'deploy/weir-admin']);
    for (const source of copied) assert.ok(existsSync(path.join(PACKAGE_ROOT, source)), source);
    assert.match(dockerfile, /^COPY --from=build \/weir\/build\/exe\/weir /m);
    const [, user, group] = /^USER (\d+):(\d+)$/m.exec(dockerfile)!;
    assert.match(dockerfile, new RegExp(`groupadd --gid ${group} weir .*useradd --uid ${user} --gid weir `, 's'));
    const [program, ...args] = [...listOf('ENTRYPOINT'), ...listOf('CMD')];
    assert.equal(program, 'weir');
    const { disableHotRestart, cpusetThreads, configPath } = optionsOf(args);
    assert.deepEqual([disableHotRestart, cpusetThreads, configPath], [true, true, '/etc/weir/weir.yaml']);
  });

  it('asks the admin interface whether it is well, and tells it to drain', async () => {
    assert.deepEqual(listOf('HEALTHCHECK'), ['weir-admin', 'GET', '/ready']);
    const port = await unusedPort();
    const ask = (method: string, at: string): Promise<ExitResult> =>
      runProgram(path.join(DEPLOY, 'weir-admin'), [method, at], { env: { WEIR_ADMIN_PORT: String(port) } });
    assert.equal((await ask('GET', '/ready')).code, 1);
    const admin = { address: { socket_address: { address: '127.0.0.1', port_value: port } } };
    await using weir = await startWeir({ configYaml: JSON.stringify({ admin }) });
    const ready = await ask('GET', '/ready');
    assert.deepEqual([ready.code, ready.stdout], [0, 'LIVE\n'], ready.stderr);
    assert.equal((await ask('GET', '/nowhere')).code, 1);
    const command = container.lifecycle.preStop.exec.command[2]!;
    const [, method, order] = /^weir-admin (\S+) '(\S+)'; /.exec(command)!;
    assert.deepEqual([(await ask(method!, order!)).stdout, (await ask('POST', '/healthcheck/fail')).code], ['OK\n', 0]);
    assert.equal((await ask('GET', '/ready')).code, 1);
    assert.match(weir.output.stderr, /draining all listeners/);
  });
});

describe('the manifest for Kubernetes', () => {
  it("has times that fit one another, and a user that is the image's", () => {
    const { drainTimeS, shutdownGraceS, configPath } = optionsOf([...listOf('ENTRYPOINT').slice(1), ...container.args]);
    const sleepS = Number(/sleep (\d+)$/.exec(container.lifecycle.preStop.exec.command[2]!)![1]);
    assert.ok(sleepS >= drainTimeS);
    assert.ok(pod.spec.terminationGracePeriodSeconds > sleepS + shutdownGraceS);
    assert.match(dockerfile, new RegExp(`^USER ${pod.spec.securityContext.runAsUser}:`, 'm'));
    const [volume] = pod.spec.volumes;
    assert.equal(path.dirname(configPath), container.volumeMounts.find(({ name }) => name === volume!.name)!.mountPath);
  });

  it('selects its own pods, and names ports that listeners have', () => {
    assert.deepEqual(manifest('Deployment').spec.selector.matchLabels, pod.metadata.labels);
    assert.deepEqual(manifest('Service').spec.selector, pod.metadata.labels);
    const { listeners } = (readYaml(bootstrapText) as Bootstrap).static_resources;
    const listening = listeners.map(({ name, address }) => [name, address.socket_address.port_value]);
    assert.deepEqual(
      container.ports.map(({ name, containerPort }) => [name, containerPort]),
      listening,
    );
    const named = new Set(container.ports.map(({ name }) => name));
    const { startupProbe, readinessProbe, livenessProbe } = container;
    for (const { httpGet, tcpSocket } of [startupProbe, readinessProbe, livenessProbe])
      assert.ok(named.has((httpGet ?? tcpSocket)!.port));
    for (const { targetPort } of manifest('Service').spec.ports) assert.ok(named.has(targetPort));
    assert.ok(listening.flat().includes(Number(pod.metadata.annotations['prometheus.io/port'])));
  });

  it('has a configuration without a fault, by which probes and Prometheus are answered, and nobody else', async () => {
    assert.deepEqual(load(bootstrapText).faults, []);
    const adminPort = await unusedPort();
    const text = bootstrapText
      .replaceAll('9901', String(adminPort))
      .replaceAll('0.0.0.0', '127.0.0.1')
      .replaceAll(/port_value: (?:8080|9902)/g, 'port_value: 0')
      .replace('address: app,', 'address: localhost,')
      .replace(/(address: localhost, port_value:) 0/, '$1 1');
    await using weir = await startWeir({ configYaml: text });
    const { port } = (await weir.listeners()).get('status')!;
    const ask = (at: string, options: JsonObject = {}): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}${at}`, options);
    const { readinessProbe, startupProbe } = container;
    for (const { httpGet } of [readinessProbe, startupProbe]) assert.equal((await ask(httpGet!.path)).status, 200);
    assert.match(await (await ask(pod.metadata.annotations['prometheus.io/path']!)).text(), /_server_live\b/);
    assert.equal((await ask('/quitquitquit', { method: 'POST' })).status, 404);
    await runProgram(path.join(DEPLOY, 'weir-admin'), ['POST', '/healthcheck/fail'], {
      env: { WEIR_ADMIN_PORT: String(adminPort) },
    });
    assert.equal((await ask('/ready')).status, 503);
  });
});

describe('the unit for systemd', () => {
  const unit = readFileSync(path.join(DEPLOY, 'weir.service'), 'utf8');

  it('starts the program with options of its, and leaves it the time that it asks for', () => {
    const [, command] = /^ExecStart=\S+weir-hot-restarter -- weir (.*)$/m.exec(unit)!;
    const { parentShutdownTimeS, drainTimeS } = optionsOf(command!.split(' '));
    assert.ok(parentShutdownTimeS > drainTimeS);
  });

  it('is one that systemd understands', async (t) => {
    const version = await runProgram('systemd-analyze', ['--version']).catch(() => undefined);
    if (version?.code !== 0) return t.skip('there is no systemd');
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-unit-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const isOld = Number(/^systemd (\d+)/.exec(version.stdout)![1]) < 253;
    const file = path.join(folder, 'weir.service');
    const text = unit.replace(/^(ExecStart=)\S+/m, '$1/bin/true').replace(/^Documentation=.*\n/m, '');
    // As its comment has it.
    writeFileSync(file, isOld ? text.replace('notify-reload', 'notify\nExecReload=/bin/kill -HUP $MAINPID') : text);
    const { code, stdout, stderr } = await runProgram('systemd-analyze', ['verify', file]);
    assert.deepEqual([code, stdout, stderr], [0, '', '']);
  });
});
