import assert from 'node:assert/strict';
import { copyFileSync, writeFileSync } from 'node:fs';
import { after, before, beforeEach, describe, it } from 'node:test';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import { loadBootstrap, protoSchema, type SecretMessage } from '../../../../src/config/index.ts';
import { decodeMessage } from '../../../../src/config/proto/wire.ts';
import type { ActiveListener } from '../../../../src/control-plane/listener-manager/active-listener.ts';
import type { ListenerManager } from '../../../../src/control-plane/listener-manager/listener-manager.ts';
import { secretKey } from '../../../../src/control-plane/secrets/secrets.ts';
import type { FileWatches, WatchedFile } from '../../../../src/control-plane/subscription/file-watches.ts';
import type { ChangedContexts } from '../../../../src/control-plane/tls/changed-contexts.ts';
import { ListenerTls } from '../../../../src/control-plane/tls/tls-owners.ts';
import { TlsReloads } from '../../../../src/control-plane/tls/tls-reloads.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import { CertificateFolder, type TestCertificate } from '../../../support/certificates.ts';
import { bytesOf } from '../../../support/control-plane.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';
import { bootstrapOf, pair, tlsListener } from '../../../support/tls-config.ts';

const SETTLE_MS = 1_000;
const SECRET = 'proxy.extensions.transport_sockets.tls.v3.Secret';

let folder: CertificateFolder;
let one: TestCertificate;
let two: TestCertificate;
let used: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  one = await folder.make('one');
  two = await folder.make('two');
  used = await folder.make('used');
});
after(() => folder[Symbol.dispose]());
beforeEach(() => write(one, one));

function write(certificate: TestCertificate, key: TestCertificate): void {
  copyFileSync(certificate.certificatePath, used.certificatePath);
  copyFileSync(key.keyPath, used.keyPath);
}

/** Whoever watches is told by the test. */
class ToldWatches implements Pick<FileWatches, 'follow'> {
  readonly watched = new Set<{ readonly paths: readonly string[]; readonly tell: (paths: Set<string>) => void }>();

  follow(files: Iterable<WatchedFile>, _since: number, tell: (paths: ReadonlySet<string>) => void): () => void {
    const entry = { paths: [...files].map((file) => file.path), tell };
    this.watched.add(entry);
    return () => this.watched.delete(entry);
  }

  changed(file: string): void {
    for (const { paths, tell } of this.watched) if (paths.includes(file)) tell(new Set([file]));
  }
}

class Fixture {
  readonly clock = new ManualClock();
  readonly watches = new ToldWatches();
  readonly stats = statsFixture({ workerCount: 1 });
  readonly log: string[] = [];
  readonly secured: { readonly name: string; readonly changed: ChangedContexts; readonly apply: () => void }[] = [];
  readonly listeners: readonly ActiveListener[];
  /** Those that have come. */
  readonly secrets = new Map<string, SecretMessage>();
  readonly failedRotations: string[] = [];
  readonly reloads: TlsReloads;

  constructor(count: number, common: object = { tls_certificates: [pair(used)] }) {
    const listeners = Array.from({ length: count }, (_, index) => tlsListener(`tls-${index}`, { common }));
    const input = { configPath: '', configYaml: bootstrapOf(listeners), allowUnknownStaticFields: false };
    const loaded = loadBootstrap({ ...input, serviceCluster: '', serviceNode: '', serviceZone: '' });
    assert.ok(loaded.bootstrap, JSON.stringify(loaded.faults));
    const { messages } = loaded.bootstrap;
    this.listeners = loaded.bootstrap.listeners.map((settings, index) => {
      // All of a listener that is looked at.
      const filterChains = settings.filterChains.map(({ tls }) => ({ tls: { settings: tls } }));
      const snapshot = { filterChains, defaultFilterChain: null };
      return {
        name: settings.name,
        settings,
        snapshot,
        message: messages.listeners[index],
      } as unknown as ActiveListener;
    });
    const sink = { write: ({ message }: { message: string }) => void this.log.push(message) };
    this.reloads = new TlsReloads({
      stats: this.stats.store,
      clock: this.clock,
      faults: new FaultBoundary((where, error) => assert.fail(`${where}: ${(error as Error).message}`)),
      log: new Loggers({ levels: { default: 'debug' }, threadId: 0, sink }).get('secret'),
      watches: this.watches as unknown as FileWatches,
      input: () => ({
        secrets: messages.secrets,
        discoveredSecrets: (name) => this.secrets.get(name),
      }),
      readAtMs: 0,
      onRotationFailed: (name) => void this.failedRotations.push(name),
    });
    const secure: ListenerManager['secure'] = ({ name }, changed, apply) =>
      void this.secured.push({ name, changed, apply });
    for (const listener of this.listeners) this.reloads.add(listener, new ListenerTls(listener, { secure }));
  }

  count(name: string, listener = 'tls-0'): number {
    return this.stats.store.scope(`listener.${listener}.server_ssl_socket_factory.`).value(name);
  }

  /** Until what was read has been looked at, whatever came of it. */
  async settled(): Promise<void> {
    const before = this.clock.timerCount;
    await eventually(() => this.clock.timerCount > before, 'a wait for the workers or for another look');
  }
}

describe('TLS contexts whose files change', () => {
  it('are given a second look before anybody hears that they are wrong', async () => {
    const fixture = new Fixture(1);
    write(one, two);
    fixture.watches.changed(used.keyPath);
    await fixture.settled();
    assert.equal(fixture.count('ssl_context_update_failed'), 0);
    write(two, two);
    fixture.clock.turn(SETTLE_MS);
    await eventually(() => fixture.secured.length === 1, 'the new pair');
    assert.equal(fixture.secured[0]!.changed.get(0)!.settings.certificates[0]!.leaf, two.certificate);
    assert.equal(fixture.count('ssl_context_update_by_file'), 0);
    fixture.secured[0]!.apply();
    assert.equal(fixture.count('ssl_context_update_by_file'), 1);
    assert.equal(fixture.count('ssl_context_update_failed'), 0);
    assert.doesNotMatch(fixture.log.join('\n'), /goes on with/);
  });

  it('are refused when they are still wrong then, naming what is wrong and nothing that is secret', async () => {
    const fixture = new Fixture(1);
    writeFileSync(used.keyPath, `${two.key.slice(0, 100)}\n`);
    fixture.watches.changed(used.keyPath);
    await fixture.settled();
    fixture.clock.turn(SETTLE_MS);
    await eventually(() => fixture.log.length > 0, 'a line');
    assert.equal(fixture.count('ssl_context_update_failed'), 1);
    assert.match(
      fixture.log[0]!,
      /^listener tls-0: TLS goes on with what it had: .*private_key: .*holds no private key in PEM$/,
    );
    assert.ok(!fixture.log[0]!.includes(two.key.slice(40, 80)));
    assert.equal(fixture.secured.length, 0);
  });

  it('are read once where they are alike, and told of in one line', async () => {
    const fixture = new Fixture(40);
    write(two, two);
    fixture.watches.changed(used.certificatePath);
    // A few at a time: workers are not to make all contexts in one go.
    await eventually(() => fixture.secured.length === 16, 'the first listeners');
    for (let applied = 0; applied < 40; applied += 1) {
      await eventually(() => fixture.secured.length > applied, 'the next listener');
      fixture.secured[applied]!.apply();
    }
    const [first, ...others] = fixture.secured.map(({ changed }) => changed.get(0)!.settings);
    assert.ok(others.every((settings) => settings === first));
    await eventually(() => fixture.log.length === 1, 'a line');
    assert.match(fixture.log[0]!, /^listener tls-0 and 39 more: TLS goes by what has changed in .*used\.pem$/);
  });

  it('are left alone where nothing of theirs is another', async () => {
    const fixture = new Fixture(2);
    fixture.reloads.remove(fixture.listeners[0]!);
    write(two, two);
    fixture.watches.changed(used.keyPath);
    await eventually(() => fixture.secured.length === 1, 'the listener that is left');
    assert.equal(fixture.secured[0]!.name, 'tls-1');
    fixture.reloads.remove(fixture.listeners[1]!);
    // Its cells may be somebody else's by now.
    fixture.secured[0]!.apply();
    assert.equal(fixture.watches.watched.size, 0);
    assert.equal(fixture.count('ssl_context_update_by_file', 'tls-1'), 0);
  });

  it('are not held up by a worker that does not answer', async () => {
    const fixture = new Fixture(20);
    write(two, two);
    fixture.watches.changed(used.keyPath);
    await eventually(() => fixture.secured.length === 16, 'the first listeners');
    fixture.clock.turn(2_000);
    await eventually(() => fixture.secured.length === 20, 'all listeners');
  });
});

describe('secrets by discovery', () => {
  const source = {
    origin: { kind: 'file' as const, path: '/secrets.json', watchedFolder: undefined },
    resourceGeneration: 'v3' as const,
    initialFetchTimeoutMs: 15_000,
  };
  const asking = { name: 'own', sds_config: { path_config_source: { path: '/secrets.json' } } };
  const common = { tls_certificate_sds_secret_configs: [asking] };
  const secretOf = (certificate: object): SecretMessage => {
    const type = protoSchema().messageType(SECRET);
    return decodeMessage(type, bytesOf(SECRET, { name: 'own', tls_certificate: certificate as JsonObject })) as never;
  };

  it('make the contexts anew that they belong to, which are watched with the files that they name from then on', async () => {
    const fixture = new Fixture(2, common);
    await fixture.reloads.secretChanged(secretKey('other', source), 'other');
    assert.equal(fixture.secured.length, 0);
    fixture.secrets.set('own', secretOf(pair(used)));
    await fixture.reloads.secretChanged(secretKey('own', source), 'own');
    assert.equal(fixture.secured.length, 2);
    const { changed, apply } = fixture.secured[0]!;
    const { settings, configured } = changed.get(0)!;
    assert.deepEqual([settings.certificates.length, settings.missingSecrets], [1, []]);
    assert.deepEqual([configured.certificates.length, configured.missingSecrets], [0, ['own']]);
    apply();
    assert.equal(fixture.count('ssl_context_update_by_sds'), 1);
    assert.match(fixture.log.join('\n'), /listener tls-0 and 1 more: TLS goes by what has changed in secret own/);
    const watched = [...fixture.watches.watched].map(({ paths }) => [...paths].sort().join());
    assert.deepEqual(new Set(watched), new Set([[used.keyPath, used.certificatePath].sort().join()]));
  });

  it('tell of files that they name which cannot be used', async () => {
    const fixture = new Fixture(1, common);
    fixture.secrets.set('own', secretOf(pair(used)));
    await fixture.reloads.secretChanged(secretKey('own', source), 'own');
    write(one, two);
    fixture.watches.changed(used.keyPath);
    await fixture.settled();
    fixture.clock.turn(SETTLE_MS);
    await eventually(() => fixture.failedRotations.length > 0, 'a failed rotation');
    assert.deepEqual([fixture.failedRotations, fixture.count('ssl_context_update_failed')], [['own'], 1]);
  });

  it('are put in their places before anybody shakes hands', () => {
    const fixture = new Fixture(1, common);
    const applied: ChangedContexts[] = [];
    const [listener] = fixture.listeners;
    const owner = new ListenerTls(listener!, { secure: () => assert.fail('no worker knows the listener') });
    fixture.reloads.complete({}, owner, (changed) => void applied.push(changed));
    assert.equal(applied.length, 0);
    fixture.secrets.set('own', secretOf(pair(used)));
    fixture.reloads.complete({}, owner, (changed) => void applied.push(changed));
    assert.equal(applied[0]!.get(0)!.settings.certificates.length, 1);
    assert.equal(fixture.count('ssl_context_update_by_sds'), 1);
    fixture.secrets.set('own', secretOf({ certificate_chain: { inline_string: 'none' } }));
    fixture.reloads.complete({}, owner, (changed) => void applied.push(changed));
    assert.deepEqual([applied.length, fixture.count('ssl_context_update_failed')], [1, 1]);
  });
});
