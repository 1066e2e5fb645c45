// Connections that are there before the requests that need them, through listeners, routes and real sockets.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DataPlaneFixture, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

for (const [name, preconnect, connections] of [
  ['by host: a second connection beside the first', { perHostRatio: 2, predictiveRatio: 1 }, [2, 0, 0]],
  ['by forecast: one to each of the next hosts', { perHostRatio: 1, predictiveRatio: 3 }, [1, 1, 1]],
  ['not at all', { perHostRatio: 1, predictiveRatio: 1 }, [1, 0, 0]],
] as const) {
  test(`a request is prepared for ${name}`, async (t) => {
    const upstreams = await Promise.all([0, 1, 2].map(() => WireUpstream.answering(OK)));
    const proxy = new DataPlaneFixture();
    proxy.cluster(
      'web',
      upstreams.map(({ port }) => loopback(port)),
      { preconnect },
    );
    const wire = new WireClient(await proxy.http([routeTo('web')]));
    t.after(async () => {
      wire.close();
      await proxy.close();
      await Promise.all(upstreams.map((upstream) => upstream.close()));
    });
    assert.equal((await wire.write(GET).response()).body, 'ok');
    const total = connections.reduce<number>((sum, count) => sum + count, 0);
    const isThere = (): boolean => upstreams.reduce((sum, { sockets }) => sum + sockets.length, 0) === total;
    await eventually(isThere, 'the connections');
    const opened = upstreams.map(({ sockets }) => sockets.length).sort((a, b) => b - a);
    assert.deepEqual(
      opened,
      [...connections].sort((a, b) => b - a),
    );
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), total);
    await eventually(() => proxy.clusterSamples('web', 'upstream_cx_connect_ms').length === total, 'their ends');
    for (let n = 1; n < total; n++) assert.equal((await wire.write(GET).response()).status, 200);
    if (connections[0] === 1 && total > 1) assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), total);
  });
}
