// A proxy, its listener called `in`, of which a management server tells what connections and requests lack when they want it.

import type { TestContext } from 'node:test';
import { ControlPlane } from './control-plane.ts';
import { bootstrap, CLUSTER, FORMS, type Form } from './discovered-proxy.ts';
import { startWeir, type WeirProcess } from './weir-process.ts';

/** What is asked for one by one wants those. */
export const CHANGES: readonly Form[] = FORMS.filter(({ api_type }) => api_type === 'DELTA_GRPC');
export const [AGGREGATED, OWN_STREAM] = CHANGES as [Form, Form];

export interface OnDemandProxy {
  readonly plane: ControlPlane;
  readonly weir: WeirProcess;
  readonly port: number;
}

/** @param prepare sets what the server has at the start, the listener among it. */
export async function onDemandProxy(
  t: TestContext,
  form: Form,
  prepare: (plane: ControlPlane) => void,
  args: readonly string[] = ['--concurrency', '2'],
): Promise<OnDemandProxy> {
  const plane = await ControlPlane.start(t);
  plane.set(CLUSTER, '1', []);
  prepare(plane);
  const weir = await startWeir({ configYaml: bootstrap(form, [plane]), args });
  t.after(async () => void (await weir.stop()));
  return { plane, weir, port: (await weir.listeners()).get('in')!.port };
}

/** Names that the server has been asked for, in their order. @param type all when absent. */
export function subscribed({ requests }: ControlPlane, type?: string): readonly string[] {
  return requests.filter(isOf(type)).flatMap(({ resource_names_subscribe: names }) => names);
}

/** The same of names that it was not asked for any more. */
export function unsubscribed({ requests }: ControlPlane, type?: string): readonly string[] {
  return requests.filter(isOf(type)).flatMap(({ resource_names_unsubscribe: names }) => names);
}

function isOf(type: string | undefined): (request: { readonly type_url: string }) => boolean {
  return ({ type_url: url }) => type === undefined || url.endsWith(`.${type}`);
}
