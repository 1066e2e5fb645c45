// What becomes of responses that a policy has been chosen for, prepared once per snapshot.

import { type AbsoluteTarget, absoluteTarget } from '../../../base/absolute-target.ts';
import {
  type BodyFormat,
  compileBodyFormat,
  compileHeaderEdits,
  compileRedirect,
  type FilterContext,
  type FindMatch,
  type HeaderEditor,
  type MatchedResponse,
  type TextHead,
} from '../../../data-plane/index.ts';
import type { HeaderEdits, RedirectAction } from '../../../snapshot/index.ts';
import type { CustomResponseSettings, Policy } from './settings.ts';

export interface LocalAnswer {
  readonly kind: 'local';
  readonly body: Buffer;
  readonly format: BodyFormat | null;
  readonly status: number | null;
  readonly responseEdits: HeaderEditor | null;
}

export interface OtherRequest {
  readonly kind: 'redirect';
  /** @param head of the request at hand. @returns undefined for what is no place. */
  readonly targetFor: (head: TextHead) => AbsoluteTarget | undefined;
  readonly status: number | null;
  readonly requestEdits: HeaderEditor | null;
  readonly responseEdits: HeaderEditor | null;
}

export type CompiledPolicy = LocalAnswer | OtherRequest;

/** What one level of the configuration says. */
export class Policies {
  readonly asksOthers: boolean;
  readonly #find: FindMatch<MatchedResponse, CompiledPolicy> | null;

  constructor({ tree, asksOthers }: CustomResponseSettings, context: FilterContext) {
    this.asksOthers = asksOthers;
    this.#find = tree === null ? null : context.compileResponseTree(tree, compilePolicy);
  }

  find(response: MatchedResponse): CompiledPolicy | undefined {
    return this.#find === null ? undefined : this.#find(response);
  }
}

function compilePolicy(policy: Policy): CompiledPolicy {
  const responseEdits = editorOf(policy.responseEdits);
  if (policy.kind === 'redirect') {
    const { target, status, requestEdits } = policy;
    const targetFor = 'kind' in target ? targetOf(target) : () => target;
    return { kind: 'redirect', targetFor, status, requestEdits: editorOf(requestEdits), responseEdits };
  }
  const { body, format, status } = policy;
  return {
    kind: 'local',
    body: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    format: compileBodyFormat(format),
    status,
    responseEdits,
  };
}

function editorOf(edits: HeaderEdits | null): HeaderEditor | null {
  return edits === null ? null : compileHeaderEdits([edits]);
}

function targetOf(action: RedirectAction): OtherRequest['targetFor'] {
  const locationOf = compileRedirect(action, { kind: 'prefix', value: '', caseSensitive: true });
  return (head) => {
    const target = head.startLine.split(' ')[1]!;
    return absoluteTarget(
      locationOf({
        authority: head.headerByName('host') ?? '',
        forwardedProto: head.headerByName('x-forwarded-proto') ?? 'http',
        target,
        path: target.split('?', 1)[0]!,
      }),
    );
  };
}
