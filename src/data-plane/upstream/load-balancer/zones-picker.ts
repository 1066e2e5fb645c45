// Picking by locality, this proxy's own first, as main has worked it out.

import type { Random } from '../../../base/random.ts';
import { type Fraction, isWithin } from '../../../base/runtime.ts';
import type { HostZones } from '../../../wasm/lb.ts';
import type { DrawContext, PickContext } from './pick-context.ts';
import { NO_HOST, type SourcePicker } from './source-picker.ts';

export type ZonePickEvent =
  | 'lb_local_cluster_not_ok'
  | 'lb_zone_routing_all_directly'
  | 'lb_zone_routing_sampled'
  | 'lb_zone_routing_cross_zone'
  | 'lb_zone_no_capacity_left';

export interface ZonesPickerOptions {
  readonly routes: Omit<HostZones, 'kind' | 'any' | 'zones'>;
  readonly any: SourcePicker;
  readonly zones: readonly { readonly upTo: number; readonly picker: SourcePicker }[];
  /** Of requests that go by locality at all. */
  readonly enabled: { readonly value: Fraction };
  readonly random: Random;
  readonly count: (event: ZonePickEvent) => void;
}

const SHARES = 10_000;

export class ZonesPicker implements SourcePicker {
  readonly #options: ZonesPickerOptions;

  constructor(options: ZonesPickerOptions) {
    this.#options = options;
  }

  pick(request: PickContext, draws: DrawContext | null): number {
    const { routes, any, zones, enabled, random, count } = this.#options;
    if (!isWithin(enabled.value, random.u32())) return any.pick(request, draws);
    if (routes.isPanic) {
      count('lb_local_cluster_not_ok');
      return routes.failsInPanic ? NO_HOST : any.pick(request, draws);
    }
    return zones[this.#choose()]!.picker.pick(request, draws);
  }

  #choose(): number {
    const { routes, zones, random, count } = this.#options;
    if (routes.isDirect) {
      count('lb_zone_routing_all_directly');
      return 0;
    }
    if (random.u32() % SHARES < routes.localShare) {
      count('lb_zone_routing_sampled');
      return 0;
    }
    count('lb_zone_routing_cross_zone');
    const room = zones.at(-1)!.upTo;
    if (room === 0) {
      count('lb_zone_no_capacity_left');
      return random.u32() % zones.length;
    }
    const drawn = random.u32() % room;
    let index = 0;
    while (drawn >= zones[index]!.upTo) index += 1;
    return index;
  }
}
