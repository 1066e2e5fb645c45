// A working bootstrap with a few values taken out, replaced or copied elsewhere: whatever comes of it, loading
// ends with settings or with an error, never with an exception.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import fc from 'fast-check';
import { load } from '../../../support/bootstrap.ts';

type Tree = null | boolean | number | string | Tree[] | { [key: string]: Tree };
type Parent = { [key: string]: Tree };

const WORKING = readFileSync(path.join(import.meta.dirname, 'front-proxy/bootstrap.json'), 'utf8');

const STRANGE: readonly Tree[] = [
  null,
  0,
  -1,
  65536,
  1e300,
  '',
  'x',
  '*',
  true,
  [],
  {},
  [[]],
  [{}],
  '1s',
  'envoy.router',
  { '@type': 'x' },
];

/** Every place of the tree, as the collection around it and its key. */
function places(tree: Tree, found: [Parent, string][] = []): [Parent, string][] {
  if (typeof tree !== 'object' || tree === null) return found;
  const parent = tree as Parent;
  for (const key of Object.keys(parent)) {
    found.push([parent, key]);
    places(parent[key]!, found);
  }
  return found;
}

interface Change {
  readonly kind: 'drop' | 'replace' | 'copy';
  readonly at: number;
  readonly from: number;
}

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('drop', 'replace', 'copy'),
  at: fc.nat(9999),
  from: fc.nat(9999),
});

function apply(tree: Tree, { kind, at, from }: Change): void {
  const all = places(tree);
  if (all.length === 0) return;
  const [parent, key] = all[at % all.length]!;
  const [source, sourceKey] = all[from % all.length]!;
  if (kind === 'drop') {
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  } else {
    parent[key] = structuredClone(kind === 'copy' ? source[sourceKey]! : STRANGE[from % STRANGE.length]!);
  }
}

it('a damaged bootstrap gives settings or an error', () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), fc.boolean(), (changes, allowUnknownStaticFields) => {
      const tree = JSON.parse(WORKING) as Tree;
      for (const each of changes) apply(tree, each);
      const { bootstrap, faults } = load(JSON.stringify(tree), { allowUnknownStaticFields });
      assert.notEqual(
        bootstrap === undefined,
        faults.every(({ severity }) => severity === 'warning'),
      );
      // Settings travel to workers.
      if (bootstrap) structuredClone([bootstrap.listeners, bootstrap.clusters]);
    }),
    { numRuns: 200 },
  );
});
