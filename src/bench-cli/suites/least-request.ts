// Least request: the pick of each request, alone and with the counting of its start and end, which all workers share.

import { openPicker } from '../../wasm/lb/host-picker.ts';
import { type Balancers, hostsOf, openBalancers } from '../balancer-fixture.ts';
import type { BenchCase, OpenCase, Sizes } from '../case.ts';
import { once } from '../once.ts';
import { PlainSchedule, PlainTwoChoices } from '../twins/least-request.ts';

export function leastRequestCases({ hosts }: Sizes): readonly BenchCase[] {
  const balancers = once(openBalancers);
  return hosts.flatMap((count): BenchCase[] => [
    { suite: 'least-request', name: `pick, ${count} hosts`, open: () => openPick(balancers(), count) },
    {
      suite: 'least-request',
      name: `pick, start, finish, ${count} hosts`,
      open: () => openRequest(balancers(), count),
    },
    { suite: 'least-request', name: `weighted pick, ${count} hosts`, open: () => openWeightedPick(balancers(), count) },
  ]);
}

function openPick(balancers: Balancers, count: number): OpenCase {
  const { picker, close } = openSubject(balancers, count, false);
  const twin = new PlainTwoChoices(count);
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) picker.pick();
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.pick();
    },
    close,
  };
}

function openWeightedPick(balancers: Balancers, count: number): OpenCase {
  const { picker, close } = openSubject(balancers, count, true);
  const twin = new PlainSchedule(hostsOf(count, true));
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) picker.pick();
    },
    twin: (times) => {
      for (let n = 0; n < times; n += 1) twin.pick();
    },
    close,
  };
}

function openRequest(balancers: Balancers, count: number): OpenCase {
  const { picker, records, addresses, close } = openSubject(balancers, count, false);
  const twin = new PlainTwoChoices(count);
  return {
    subject: (times) => {
      for (let n = 0; n < times; n += 1) {
        const record = addresses[picker.pick()]!;
        records.addActiveRequests(record, 1);
        records.addActiveRequests(record, -1);
      }
    },
    twin: (times) => {
      const { active } = twin;
      for (let n = 0; n < times; n += 1) {
        const host = twin.pick();
        active[host]! += 1;
        active[host]! -= 1;
      }
    },
    close,
  };
}

function openSubject({ owner, kernel, tables }: Balancers, count: number, weighted: boolean) {
  const members = hostsOf(count, weighted).map(({ weight }) => ({
    weight,
    record: owner.recordAllocator.allocateHost(weight),
  }));
  const plan = tables.buildLeastRequest(members);
  return {
    picker: openPicker(kernel, plan, 1),
    records: owner.shared.records,
    addresses: members.map(({ record }) => record),
    close: () => {
      tables.free(plan);
      for (const { record } of members) owner.recordAllocator.free(record);
    },
  };
}
