// Acknowledgements that say thousands of names, in the real program over real streams: they rest for a moment, and nothing of what they
// answer is lost.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ControlPlane, type ReceivedRequest } from '../support/control-plane.ts';
import {
  answerOf,
  assignment,
  bootstrap,
  ENDPOINTS,
  eds,
  FORMS,
  listener,
  ofForm,
  serve,
  upstreamSaying,
} from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';

/** Longer than 64 KiB together. */
const NAMES = Array.from(
  { length: 1_100 },
  (_, index) => `${'a-rather-long-name-of-a-cluster-somewhere-in-the-mesh'}-${index}`,
);
const UPDATES = 150;

const numberOf = ({ response_nonce: nonce }: ReceivedRequest): number => Number(nonce.slice('nonce-'.length));

function acknowledgements(plane: ControlPlane, stream: number): readonly ReceivedRequest[] {
  return plane.requests.filter(
    ({ type_url, response_nonce, stream: own }) =>
      own === stream && type_url.endsWith('.ClusterLoadAssignment') && response_nonce !== '',
  );
}

describe('many updates for one who acknowledges with thousands of names', () => {
  for (const form of FORMS.filter(({ isAggregated, generation }) => isAggregated && generation === 'V3')) {
    it(`are acknowledged in their order, up to the last, also when the stream ends meanwhile: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
      const [first] = NAMES as [string];
      // A server of state may say what has changed alone; one of changes never says less than there is.
      const isState = form.api_type === 'GRPC';
      const all = (port: number) => NAMES.map((name) => assignment(name, name === first ? port : one));
      const changed = (port: number) => (isState ? [assignment(first, port)] : all(port));
      plane.set(ENDPOINTS, '0', all(one));
      serve(
        plane,
        '1',
        NAMES.map((name) => eds(name, ofForm(form))),
        [listener('in', first)],
      );
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
      assert.equal(await answerOf(weir, 'in'), '200 one');
      await plane.answered(ENDPOINTS, '0');

      const updates = isState ? UPDATES : 10;
      for (let version = 1; version <= updates; version += 1) {
        plane.set(ENDPOINTS, String(version), changed(version % 2 === 0 ? one : two));
        await new Promise((resolve) => setImmediate(resolve));
      }
      await plane.answered(ENDPOINTS, String(updates));
      const answers = acknowledgements(plane, 1);
      assert.deepEqual(
        answers.map(numberOf),
        answers.map(numberOf).toSorted((a, b) => a - b),
      );
      assert.equal(new Set(answers.map(numberOf)).size, answers.length);
      for (const { error_detail, resource_names } of answers) {
        assert.equal(error_detail, null);
        // Names that came in several requests are all said by the last of them.
        if (isState) assert.ok(resource_names.length <= NAMES.length);
      }
      if (isState) {
        assert.equal(answers.at(-1)!.version_info, String(updates));
        assert.equal(answers.at(-1)!.resource_names.length, NAMES.length);
        const versions = answers.map(({ version_info }) => Number(version_info));
        assert.deepEqual(
          versions,
          versions.toSorted((a, b) => a - b),
        );
        assert.ok(answers.length < updates, `${answers.length} acknowledgements`);
      } else assert.ok(answers.length >= updates, 'changes are acknowledged one by one');

      // The last acknowledgement has just gone out: what comes now has to wait, and its stream ends.
      for (let more = 1; more <= 3; more += 1) plane.set(ENDPOINTS, String(updates + more), changed(two));
      plane.endStreams();
      await untilEqual('200 two', () => answerOf(weir, 'in'), 'the last update');
      await untilEqual(1, () => plane.streams, 'another stream');
      plane.set(ENDPOINTS, 'last', changed(one));
      await plane.answered(ENDPOINTS, 'last');
      await untilEqual('200 one', () => answerOf(weir, 'in'), 'an update on the next stream');
      assert.equal(plane.answerTo(ENDPOINTS, 'last')!.error_detail, null);
      assert.equal(await weir.stat('cluster_manager.cds.update_rejected'), 0);
    });
  }
});
