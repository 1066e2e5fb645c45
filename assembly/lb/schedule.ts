// Earliest deadline first: hosts come up in proportion to their weights, evenly interleaved. A host's deadline is the
// time of its last pick plus 1/weight; ties go to the one that has waited longest. All arithmetic is in doubles and in
// the reference's order, so that the same start gives the same sequence.
// Reads the table (and host records); writes the queue, which belongs to one slab.

import {
  QUEUE_DEADLINE,
  QUEUE_ENTRIES,
  QUEUE_ENTRY_SIZE,
  QUEUE_HOST,
  QUEUE_NEXT_ORDER,
  QUEUE_ORDER,
  QUEUE_TIME,
  SCHEDULE_BIAS,
  SCHEDULE_RECORDS,
  TABLE_BODY,
  TABLE_HOSTS,
} from '../layout/lb';
import { activeRequests } from './least-request';

/** Added to weights when positions are computed, so that no division meets zero. */
const WEIGHT_EPSILON: f64 = 1e-13;

/** Fills the queue as if `picksDone` picks had been made, in time proportional to the hosts. */
export function startQueue(table: usize, queue: usize, picksDone: f64): void {
  const count = load<u32>(table + TABLE_HOSTS);
  let sum: f64 = 0;
  for (let host: u32 = 0; host < count; host++) sum += weightOf(table, host) + WEIGHT_EPSILON;
  store<f64>(queue + QUEUE_TIME, 0);
  store<u64>(queue + QUEUE_NEXT_ORDER, 0);
  let missing = picksDone;
  let time: f64 = 0;
  for (let host: u32 = 0; host < count; host++) {
    const exact = weightOf(table, host);
    const weight = exact + WEIGHT_EPSILON;
    let picks = Math.floor((weight * picksDone) / sum);
    if (picks > 0 && picks / weight >= picksDone / sum) picks -= 1;
    insert(queue, host, picksDone == 0 ? 1 / exact : (picks + 1) / weight);
    time = Math.max(time, picks / weight);
    missing -= picks;
  }
  store<f64>(queue + QUEUE_TIME, time);
  for (; missing > 0; missing -= 1) schedulePick(table, queue);
}

/** Index of the host whose turn it is; puts it back with its weight as it is now. */
export function schedulePick(table: usize, queue: usize): u32 {
  const root = queue + QUEUE_ENTRIES;
  const time = load<f64>(root + QUEUE_DEADLINE);
  const host = load<u32>(root + QUEUE_HOST);
  store<f64>(queue + QUEUE_TIME, time);
  sink(queue, load<u32>(table + TABLE_HOSTS), host, time + 1 / weightOf(table, host), takeOrder(queue));
  return host;
}

/** The weight, divided by a power of the requests in flight where the table asks for that. */
// @ts-ignore: decorator
@inline
function weightOf(table: usize, host: u32): f64 {
  const weight = load<f64>(table + TABLE_BODY + ((host as usize) << 3));
  const records = load<u32>(table + SCHEDULE_RECORDS);
  return records == 0 ? weight : biased(table, weight, activeRequests(table + (records as usize), host));
}

// Math.pow is free of lookup tables, which would be static data, only from shrink level 1 on: see asconfig.json.
function biased(table: usize, weight: f64, active: i32): f64 {
  const bias = load<f64>(table + SCHEDULE_BIAS);
  const requests = (active as f64) + 1;
  if (bias == 1.0) return weight / requests;
  if (bias == 0.0) return weight;
  return weight / Math.pow(requests, bias);
}

// @ts-ignore: decorator
@inline
function takeOrder(queue: usize): u64 {
  const order = load<u64>(queue + QUEUE_NEXT_ORDER);
  store<u64>(queue + QUEUE_NEXT_ORDER, order + 1);
  return order;
}

/** Adds an entry behind the others, which are as many as were inserted before, and lets it rise. */
function insert(queue: usize, host: u32, deadline: f64): void {
  const order = takeOrder(queue);
  let index = order as u32;
  while (index > 0) {
    const parent = (index - 1) >> 1;
    const at = entryAt(queue, parent);
    // Its order is the highest, so a tie leaves it below.
    if (load<f64>(at + QUEUE_DEADLINE) <= deadline) break;
    memory.copy(entryAt(queue, index), at, QUEUE_ENTRY_SIZE);
    index = parent;
  }
  write(entryAt(queue, index), host, deadline, order);
}

/** Puts an entry in the root's place and lets it sink. */
// @ts-ignore: decorator
@inline
function sink(queue: usize, count: u32, host: u32, deadline: f64, order: u64): void {
  let hole = entryAt(queue, 0);
  for (let child: u32 = 1; child < count; ) {
    let at = entryAt(queue, child);
    let childDeadline = load<f64>(at + QUEUE_DEADLINE);
    if (child + 1 < count) {
      const other = at + QUEUE_ENTRY_SIZE;
      const otherDeadline = load<f64>(other + QUEUE_DEADLINE);
      if (
        otherDeadline < childDeadline ||
        (otherDeadline == childDeadline && load<u64>(other + QUEUE_ORDER) < load<u64>(at + QUEUE_ORDER))
      ) {
        at = other;
        childDeadline = otherDeadline;
        child++;
      }
    }
    // Its order is the highest, so a tie lets the child rise.
    if (childDeadline > deadline) break;
    write(hole, load<u32>(at + QUEUE_HOST), childDeadline, load<u64>(at + QUEUE_ORDER));
    hole = at;
    child = (child << 1) + 1;
  }
  write(hole, host, deadline, order);
}

// @ts-ignore: decorator
@inline
function entryAt(queue: usize, index: u32): usize {
  return queue + QUEUE_ENTRIES + (index as usize) * QUEUE_ENTRY_SIZE;
}

// @ts-ignore: decorator
@inline
function write(at: usize, host: u32, deadline: f64, order: u64): void {
  store<f64>(at + QUEUE_DEADLINE, deadline);
  store<u64>(at + QUEUE_ORDER, order);
  store<u32>(at + QUEUE_HOST, host);
}
