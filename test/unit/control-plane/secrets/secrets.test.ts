// What main makes of secrets that come by discovery, with sources and files that a test plays.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { DiscoveredResponse } from '../../../../src/config/index.ts';
import { SecretNeeds } from '../../../../src/control-plane/secrets/secret-needs.ts';
import { Secrets, secretKey } from '../../../../src/control-plane/secrets/secrets.ts';
import type { ConfigSourceSettings, SecretReference } from '../../../../src/snapshot/index.ts';
import { clusterNamed, type JsonObject, mustLoad } from '../../../support/bootstrap.ts';
import { CertificateFolder, type TestCertificate } from '../../../support/certificates.ts';
import { ANY_SOURCE, DiscoveryWorld, FETCH_LIMIT_MS } from '../../../support/discovery-world.ts';
import { pair } from '../../../support/tls-config.ts';

const SERVER = ANY_SOURCE;
const FILE: ConfigSourceSettings = { ...SERVER, origin: { kind: 'file', path: '/secrets', watchedFolder: undefined } };

let folder: CertificateFolder;
let one: TestCertificate;
let two: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  one = await folder.make('one');
  two = await folder.make('two');
});
after(() => folder[Symbol.dispose]());

function wanting(fields: Partial<SecretReference> = {}): SecretReference {
  return { name: 'own', source: SERVER, kind: 'tls_certificate', isOverlay: false, ...fields };
}

function certified(certificate: Pick<TestCertificate, 'certificatePath' | 'keyPath'>): JsonObject {
  return { name: 'own', tls_certificate: pair(certificate) as JsonObject };
}

class World extends DiscoveryWorld {
  readonly changed: string[] = [];
  /** Told that files of a refused secret have changed; by their paths. */
  readonly watched = new Map<string, () => void>();
  readonly secrets: Secrets;

  constructor() {
    super();
    this.secrets = new Secrets({
      ...this.dependencies,
      watches: {
        follow: (files, _since, onChanged) => {
          const key = [...files].map((file) => file.path).join();
          this.watched.set(key, () => onChanged(new Set()));
          return () => void this.watched.delete(key);
        },
      },
    });
    this.secrets.onChanged = async (key) => void this.changed.push(key);
  }

  /** As a source does that has these secrets. */
  override answer(
    version: string,
    secrets: readonly JsonObject[],
    response: Partial<DiscoveredResponse<unknown>> = {},
  ): Promise<readonly string[]> {
    return super.answer(version, secrets, { extent: 'changes', ...response });
  }

  value(name: string): number | undefined {
    return this.stats.store.value(`sds.own.${name}`);
  }
}

describe('secrets by discovery', () => {
  it('are asked for once for all who want the same from the same source, for as long as anybody does', async () => {
    const world = new World();
    const before = world.stats.owner.cells.usedCells;
    const [first, second] = [world.secrets.lease(wanting()), world.secrets.lease(wanting())];
    const other = world.secrets.lease(wanting({ source: FILE }));
    assert.equal(world.requests.length, 2);
    assert.deepEqual(world.requests[0]!.names, new Set(['own']));
    other.release();
    other.release();
    assert.equal(world.ended, 1);
    world.requests.pop();
    assert.equal(first.isReady, false);
    assert.deepEqual(await world.answer('1', [certified(one)]), []);
    await Promise.all([first.whenReady, second.whenReady]);
    assert.deepEqual([first.isReady, world.changed], [true, [secretKey('own', SERVER)]]);
    assert.equal(world.secrets.find('own', SERVER)!.name, 'own');
    assert.equal(world.secrets.find('own', FILE), undefined);
    // The same once more.
    assert.deepEqual(await world.answer('2', [certified(one)]), []);
    assert.equal(world.changed.length, 1);
    assert.equal(world.secrets.dump()[0]!.accepted!.version, '2');
    first.release();
    assert.equal(world.ended, 1);
    second.release();
    assert.deepEqual([world.ended, world.secrets.dump()], [2, []]);
    assert.equal(world.stats.owner.cells.usedCells, before);
  });

  it('are refused by what they are wanted as, and leave the one before them', async () => {
    const world = new World();
    world.secrets.lease(wanting());
    await world.answer('1', [certified(one)]);
    const mixed = { certificatePath: one.certificatePath, keyPath: two.keyPath };
    const [refusal] = await world.answer('2', [certified(mixed)]);
    assert.match(refusal!, /^secret own: resources\[0\]\.tls_certificate\.private_key: .* is not the key of/);
    const [dumped] = world.secrets.dump();
    assert.deepEqual([dumped!.accepted!.version, dumped!.refused!.version], ['1', '2']);
    assert.match([...world.secrets.failures()][0]!.error, /private_key/);
    assert.equal(world.changed.length, 1);
    world.secrets.lease(wanting({ kind: 'validation_context' }));
    assert.match((await world.answer('3', [certified(one)]))[0]!, /is no validation_context, but a tls_certificate/);
    assert.match((await world.answer('4', [certified(one), certified(one)]))[0]!, /it holds 2 of this name/);
  });

  it('need not be whole where they are laid over what a context says', async () => {
    const named = { name: 'own', validation_context: { match_subject_alt_names: [{ exact: 'a' }] } };
    const alone = new World();
    alone.secrets.lease(wanting({ kind: 'validation_context' }));
    assert.match((await alone.answer('1', [named]))[0]!, /unless trusted_ca says whom to believe/);
    const laid = new World();
    laid.secrets.lease(wanting({ kind: 'validation_context', isOverlay: true }));
    assert.deepEqual(await laid.answer('1', [named]), []);
  });

  it('that were refused for their files are taken when those are right', async () => {
    const world = new World();
    const lease = world.secrets.lease(wanting());
    const late = { certificatePath: one.certificatePath, keyPath: path.join(folder.path, 'late.key') };
    assert.equal((await world.answer('1', [certified(late)])).length, 1);
    // What cannot be is not waited for.
    assert.equal(lease.isReady, true);
    const [[paths, tell] = assert.fail('nothing is watched')] = [...world.watched];
    assert.deepEqual(paths.split(',').sort(), [late.keyPath, late.certificatePath].sort());
    tell();
    assert.equal(world.secrets.find('own', SERVER), undefined);
    copyFileSync(one.keyPath, late.keyPath);
    tell();
    assert.notEqual(world.secrets.find('own', SERVER), undefined);
    await new Promise(setImmediate);
    assert.deepEqual([world.changed.length, world.watched.size, world.value('update_success')], [1, 0, 1]);
    world.secrets.rotationFailed('other');
    world.secrets.rotationFailed('own');
    assert.equal(world.value('key_rotation_failed'), 1);
  });

  it('are waited for until their time is over, or a file has none', async () => {
    const world = new World();
    const lease = world.secrets.lease(wanting());
    assert.deepEqual(await world.answer('1', [], { removed: ['own'] }), []);
    assert.equal(lease.isReady, false);
    assert.match(world.log.join(), /secret own is not among what its source has: there is none yet/);
    world.clock.turn(FETCH_LIMIT_MS);
    assert.deepEqual([lease.isReady, world.value('init_fetch_timeout')], [true, 1]);
    const ofFile = world.secrets.lease(wanting({ source: FILE }));
    assert.deepEqual(await world.answer('1', [], { extent: 'all' }), ['it holds no secret "own"']);
    assert.equal(ofFile.isReady, true);
  });

  it('stay when they have gone at their source', async () => {
    const world = new World();
    world.secrets.lease(wanting());
    await world.answer('1', [certified(one)]);
    assert.deepEqual(await world.answer('2', [], { removed: ['own'] }), []);
    assert.notEqual(world.secrets.find('own', SERVER), undefined);
    assert.match(world.log.join(), /the one before it stays/);
  });

  it('are needed by contexts that name some, all of them', async () => {
    const world = new World();
    assert.equal(SecretNeeds.of([undefined], world.secrets), undefined);
    const { clusters } = mustLoad({ static_resources: { clusters: [clusterNamed('a', { tls_context: {} })] } });
    const context = { ...clusters[0]!.tls!, secrets: [wanting(), wanting({ name: 'other' })] };
    const needs = SecretNeeds.of([context, undefined, context], world.secrets)!;
    assert.deepEqual(needs.targets, ['SdsApi own', 'SdsApi other']);
    let isMet = false;
    const met = needs.whenMet().then(() => (isMet = true));
    world.requests.reverse();
    await world.answer('1', [certified(one)]);
    assert.deepEqual([needs.targets, isMet], [['SdsApi other'], false]);
    world.clock.turn(FETCH_LIMIT_MS);
    await met;
    needs.release();
    assert.equal(world.ended, 2);
  });
});
