// Requests that are sent once more because the pooled connection that they went out on had been closed, and those that
// are not, by bytes on the wire.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, httpBench, OK } from '../support/http-bench.ts';
import { WireUpstream } from '../support/wire.ts';

describe('a pooled connection that its peer has closed', () => {
  /** Closes each connection when its second request arrives. */
  async function forgetful(): Promise<WireUpstream> {
    return await WireUpstream.start((socket, index) => {
      let count = 0;
      socket.on('data', () => {
        count++;
        if (index === 0 && count === 2) socket.resetAndDestroy();
        else socket.write(OK);
      });
    });
  }

  test('a GET is sent once more and the client does not notice', async (t) => {
    const { client, proxy } = await httpBench(t, { upstream: await forgetful() });
    const wire = client();
    for (let i = 0; i < 3; i++) {
      wire.write(GET);
      assert.equal((await wire.response()).status, 200);
    }
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_success'), 1);
    assertBalanced(proxy);
  });

  test('a GET whose response had begun is not sent again', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      let count = 0;
      socket.on('data', () => {
        count++;
        if (count === 2) socket.end('HTTP/1.1 200 OK\r\ncontent-');
        else socket.write(OK);
      });
    });
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client().write(GET);
    await wire.response();
    wire.write(GET);
    assert.equal((await wire.response()).status, 503);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    assertBalanced(proxy);
  });

  test('a POST may have been carried out: the client is told', async (t) => {
    const { client, proxy } = await httpBench(t, { upstream: await forgetful() });
    const wire = client().write(GET);
    await wire.response();
    wire.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx');
    assert.equal((await wire.response()).status, 503);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    assertBalanced(proxy);
  });

  test('one that was closed while idle is not used at all', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const { client, proxy } = await httpBench(t, { upstream });
    const wire = client().write(GET);
    await wire.response();
    upstream.sockets[0]!.end();
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the connection is gone');
    wire.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n');
    assert.equal((await wire.response()).status, 200);
    assertBalanced(proxy);
  });
});
