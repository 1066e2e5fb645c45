// Asks a service of gRPC about each connection, which waits for the answer; nothing behind knows of it before. Worker thread.
//
//   new connection ──► asked ──ok──► goes on
//                        ├──denied──► closed
//                        └──no answer in time, or none that makes sense──► closed, or goes on where failures are allowed to

import { compileMetadataMatch } from '../../../base/metadata-match.ts';
import type {
  CallAnswer,
  CallReceiver,
  NetworkFilter,
  NetworkFilterCallbacks,
  NetworkFilterContext,
  NetworkFilterKind,
  NetworkFilterStatus,
} from '../../../data-plane/index.ts';
import { encodeConnectionCheck } from '../../filters.http/ext_authz/check-request.ts';
import { decodeCheckResponse } from '../../filters.http/ext_authz/check-response.ts';
import { FAILED, type Verdict } from '../../filters.http/ext_authz/verdict.ts';
import { unaryAnswer, unaryCall } from '../../filters.http/grpc/unary-call.ts';
import type { NetworkExtAuthzSettings } from './settings.ts';

const NAMESPACE = 'envoy.filters.network.ext_authz';
const MAX_ANSWER_BYTES = 64 * 1024;

/** What all connections of a chain share. */
function guardOf(settings: NetworkExtAuthzSettings, context: NetworkFilterContext) {
  return {
    settings,
    isEnabled: settings.enabledMetadata === null ? null : compileMetadataMatch(settings.enabledMetadata),
    path: `/envoy.service.auth.${settings.generation}.Authorization/Check`,
    total: context.counter('total'),
    disabled: context.counter('disabled'),
    ok: context.counter('ok'),
    denied: context.counter('denied'),
    error: context.counter('error'),
    failureModeAllowed: context.counter('failure_mode_allowed'),
    closed: context.counter('cx_closed'),
    active: context.gauge('active'),
  };
}

type Guard = ReturnType<typeof guardOf>;

class ExtAuthzFilter implements NetworkFilter, CallReceiver {
  readonly #guard: Guard;
  readonly #callbacks: NetworkFilterCallbacks;
  #isAsking = false;

  constructor(guard: Guard, callbacks: NetworkFilterCallbacks) {
    this.#guard = guard;
    this.#callbacks = callbacks;
  }

  onNewConnection(): NetworkFilterStatus {
    const { settings, isEnabled, path, total, disabled, active } = this.#guard;
    if (isEnabled !== null && !isEnabled(this.#callbacks.metadata ?? undefined)) {
      disabled.add(1);
      return 'continue';
    }
    this.#isAsking = true;
    total.add(1);
    active.add(1);
    const message = encodeConnectionCheck(this.#callbacks.connection, settings);
    this.#callbacks.call(unaryCall(settings.service, path, message, MAX_ANSWER_BYTES), this);
    return 'stop';
  }

  onAnswer(answer: CallAnswer): void {
    this.#act(verdictOf(answer));
  }

  onCallFailure(): void {
    this.#act(FAILED);
  }

  onClosed(): void {
    this.#settle();
  }

  #act(verdict: Verdict): void {
    const { ok, denied, error, failureModeAllowed, settings } = this.#guard;
    this.#settle();
    if (verdict.kind === 'error') {
      error.add(1);
      if (!settings.failsOpen) {
        this.#close('ext_authz_error');
        return;
      }
      failureModeAllowed.add(1);
      this.#callbacks.continueReading();
      return;
    }
    if (verdict.metadata !== null) this.#callbacks.addMetadata(NAMESPACE, verdict.metadata);
    if (verdict.kind === 'denied') {
      denied.add(1);
      this.#close('ext_authz_denied');
      return;
    }
    ok.add(1);
    this.#callbacks.continueReading();
  }

  #close(details: string): void {
    this.#guard.closed.add(1);
    this.#callbacks.close({ details, flag: 'UAEX' });
  }

  /** The question is over, by an answer or with its connection. */
  #settle(): void {
    if (!this.#isAsking) return;
    this.#isAsking = false;
    this.#guard.active.add(-1);
  }
}

function verdictOf(answer: CallAnswer): Verdict {
  const message = unaryAnswer(answer);
  if (message === null) return FAILED;
  try {
    return decodeCheckResponse(message);
  } catch {
    return FAILED;
  }
}

export const NETWORK_EXT_AUTHZ_FILTER: NetworkFilterKind = {
  isTerminal: false,
  readsData: false,
  compile(settings, context) {
    const guard = guardOf(settings as NetworkExtAuthzSettings, context);
    return { create: (callbacks) => new ExtAuthzFilter(guard, callbacks) };
  },
};
