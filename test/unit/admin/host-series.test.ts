import assert from 'node:assert/strict';
import { it } from 'node:test';
import { hostFamilies } from '../../../src/admin/render/host-series.ts';
import { statsFixture } from '../../support/stats.ts';
import { startAdmin } from './fixture.ts';

it('series of hosts have the tags of the other stats of their clusters, and families follow each other', async () => {
  await using server = await startAdmin();
  const [web] = server.options.clusters.clusters();
  const named = (name: string) => ({ ...web!, name, observabilityName: name });
  const { store } = statsFixture({
    tags: {
      fixedTags: [{ name: 'site', value: 'x' }],
      regexTags: [{ name: 'shard', regex: /^cluster\.\w+(-(\d+))/d }],
    },
  });
  const clusters = [named('b.c'), named('web-7'), named('a.c'), named('web')];
  const selection = { usedOnly: false, filter: undefined, type: 'Counters', histogramForm: 'none' } as const;
  const seen: string[] = [];
  for await (const { extractedName, samples } of hostFamilies(
    clusters,
    { ...selection, quantiles: undefined },
    store,
  )) {
    if (!extractedName.endsWith('cx_total')) continue;
    const { tags } = samples[0]!;
    seen.push(`${extractedName} ${tags.map(({ name, value }) => `${name.replace('proxy.', '')}=${value}`).join(' ')}`);
  }
  const address = 'endpoint_address=127.0.0.1:8080';
  assert.deepEqual(seen, [
    `cluster.c.endpoint.cx_total cluster_name=a site=x ${address}`,
    `cluster.c.endpoint.cx_total cluster_name=b site=x ${address}`,
    `cluster.endpoint.cx_total cluster_name=web site=x ${address}`,
    `cluster.endpoint.cx_total cluster_name=web-7 shard=7 site=x ${address}`,
  ]);
});
