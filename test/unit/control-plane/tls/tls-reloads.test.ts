import assert from 'node:assert/strict';
import { copyFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import { loadBootstrap } from '../../../../src/config/index.ts';
import type { ActiveListener } from '../../../../src/control-plane/listener-manager/active-listener.ts';
import type { ListenerManager } from '../../../../src/control-plane/listener-manager/listener-manager.ts';
import type { FileWatches, WatchedFile } from '../../../../src/control-plane/subscription/file-watches.ts';
import { ListenerTls } from '../../../../src/control-plane/tls/tls-owners.ts';
import { type ChangedContexts, TlsReloads } from '../../../../src/control-plane/tls/tls-reloads.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { CertificateFolder, type TestCertificate } from '../../../support/certificates.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';
import { bootstrapOf, pair, tlsListener } from '../../../support/tls-config.ts';

const SETTLE_MS = 1_000;

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
  readonly reloads: TlsReloads;

  constructor(count: number, common: object = { tls_certificates: [pair(used)] }) {
    const listeners = Array.from({ length: count }, (_, index) => tlsListener(`tls-${index}`, { common }));
    const input = { configPath: '', configYaml: bootstrapOf(listeners), allowUnknownStaticFields: false };
    const loaded = loadBootstrap({ ...input, serviceCluster: '', serviceNode: '', serviceZone: '' });
    assert.ok(loaded.bootstrap, JSON.stringify(loaded.faults));
    const { messages } = loaded.bootstrap;
    this.listeners = loaded.bootstrap.listeners.map((settings, index) => {
      // All of a listener that is looked at.
      return { name: settings.name, settings, message: messages.listeners[index] } as ActiveListener;
    });
    const sink = { write: ({ message }: { message: string }) => void this.log.push(message) };
    this.reloads = new TlsReloads({
      stats: this.stats.store,
      clock: this.clock,
      faults: new FaultBoundary((where, error) => assert.fail(`${where}: ${(error as Error).message}`)),
      log: new Loggers({ levels: { default: 'debug' }, threadId: 0, sink }).get('secret'),
      watches: this.watches as unknown as FileWatches,
      input: () => ({ secrets: messages.secrets }),
      readAtMs: 0,
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
    assert.equal(fixture.secured[0]!.changed.get(0)!.certificates[0]!.leaf, two.certificate);
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
    const [first, ...others] = fixture.secured.map(({ changed }) => changed.get(0));
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

describe('secrets whose files change', () => {
  it('are watched with the files that they name from then on, also while those are wrong', async () => {
    const secretPath = path.join(folder.path, 'secret.json');
    const naming = (certificate: object): void => {
      const secret = { '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret', name: 'own' };
      writeFileSync(secretPath, JSON.stringify({ resources: [{ ...secret, tls_certificate: certificate }] }));
    };
    naming(pair(used));
    const config = { name: 'own', sds_config: { path: secretPath } };
    const fixture = new Fixture(1, { tls_certificate_sds_secret_configs: [config] });
    const sds = fixture.stats.store.scope('sds.own.');
    assert.equal(sds.value('update_success'), 1);
    const missing = { ...two, keyPath: path.join(folder.path, 'missing.key') };
    naming(pair(missing));
    fixture.watches.changed(secretPath);
    await fixture.settled();
    fixture.clock.turn(SETTLE_MS);
    await eventually(() => sds.value('update_rejected') === 1, 'a refusal');
    copyFileSync(two.keyPath, missing.keyPath);
    fixture.watches.changed(missing.keyPath);
    await eventually(() => fixture.secured.length === 1, 'the secret');
    fixture.secured[0]!.apply();
    assert.equal(fixture.count('ssl_context_update_by_sds'), 1);
    const wanted = [missing.keyPath, secretPath, two.certificatePath].sort().join();
    const watched = (): string => [...fixture.watches.watched].map(({ paths }) => [...paths].sort().join()).join(' ');
    await eventually(() => watched() === wanted, 'another watch');
    fixture.reloads.close();
    sds.close();
    assert.equal(fixture.stats.store.scope('sds.own.').value('update_success'), 0);
  });
});
