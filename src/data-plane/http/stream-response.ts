// The response side of a stream: takes the response of the upstream, or a reply of the proxy's own, and gives it to the
// client's codec. Step 5 of the request flow. The first answer also settles what becomes of a
// tunnel that the request asks for.
//
//   response:  nothing ──► started ──► complete          tunnel:  none ──► awaited ──► open, or none again
//
// A stream ends in one of three ways, each counted once: its response is complete (by class of status), the client
// went away (rx_reset), or this side broke it off: a response that had begun and could not be finished, a stop (tx_reset).

import type { HttpConnectionManagerSettings } from '../../snapshot/index.ts';
import { HTTP_STATS } from '../../stats/index.ts';
import { codecError, Framing, Method, type ResponseHead } from '../../wasm/http1.ts';
import { flagBit, NO_FLAGS } from '../response-flags.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { ForwardedRequest } from '../router/forwarded-request.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import { countStatus } from '../upstream/response-count.ts';
import type { BodyFormat } from './body-format.ts';
import { ResetReason, type StreamLoss } from './codec/downstream-stream.ts';
import type { StreamFilters } from './filter-chain.ts';
import type { HttpStreamFacts } from './http-stream-facts.ts';
import * as replies from './local-reply.ts';
import { ReplyHead } from './reply-head.ts';
import { applyServiceTime, type ResponseLines } from './response-edits.ts';
import { editResponse, hasResponseEdits } from './route-response-edits.ts';
import { type RequestLedger, StreamRecord, VIA_UPSTREAM } from './stream-record.ts';
import type { Trailers } from './trailers.ts';
import { keepUpgradeFields } from './upgrade-fields.ts';

const {
  downstream_cx_upgrades_active,
  downstream_rq_response_before_rq_complete,
  downstream_rq_rx_reset,
  downstream_rq_too_large,
  downstream_rq_tx_reset,
  rq_reset_after_downstream_response_started,
  rs_too_large,
} = HTTP_STATS.index;

const NOTHING = 0;
const STARTED = 1;
const COMPLETE = 2;

const NO_TUNNEL = 0;
const TUNNEL_AWAITED = 1;
const TUNNEL_OPEN = 2;

const CONTINUE = 100;
const REQUEST_ID = 'x-request-id';
const BAD_REQUEST = 400;
const NO_BYTES = Buffer.alloc(0);

/** The part of a connection manager that responses depend on. */
export interface ResponseManager extends RequestLedger {
  readonly settings: HttpConnectionManagerSettings;
  readonly responseLines: ResponseLines;
  /** Whether the response at hand is the last one of its connection, by a drain or for overload; asked once. */
  endsWithResponse(): boolean;
  /** A response is complete. */
  countResponse(status: number): void;
}

export abstract class StreamResponse extends StreamRecord {
  declare protected readonly manager: ResponseManager;
  /** Of a message whose end has come, or comes with the next call; its body holds none. */
  responseTrailers: Trailers | null = null;
  /** Null before the request is forwarded, and again when that has failed. */
  protected upstream: ForwardedRequest | null = null;
  /** The one that was dropped last: facts that are asked for later tell of it, its request's head among them. */
  protected formerUpstream: ForwardedRequest | null = null;
  /** Null when the request meets only the router. */
  protected filters: StreamFilters | null = null;
  /** Where its response is to say it; empty otherwise. */
  protected requestId = '';
  /** Leave to send the request's body was given by this proxy. */
  protected isContinueSent = false;
  /** The upgrade that the request asks for was admitted, and counts as active. */
  protected isUpgradeCounted = false;
  /** Of an upstream that was given up. */
  #attempts = 0;
  #response: number = NOTHING;
  #hasEnded = false;
  #tunnel: number = NO_TUNNEL;

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The request wants a tunnel, and has had no answer yet. */
  get awaitsTunnel(): boolean {
    return this.#tunnel === TUNNEL_AWAITED;
  }

  get matchesUpstreamScheme(): boolean {
    return this.manager.settings.forwarding.matchesUpstreamScheme;
  }

  /** A 101 may be the answer. Before the whole request it is not. */
  get awaitsUpgrade(): boolean {
    return this.#tunnel === TUNNEL_AWAITED && this.methodId !== Method.CONNECT && this.codec.isMessageDone;
  }

  // ---- From the downstream codec ----

  onDownstreamDrain(): void {
    if (this.filters?.encodes) this.filters.encoding.onReceiverDrain();
    else this.resumeResponse();
  }

  resumeResponse(): void {
    this.upstream?.resumeResponse();
  }

  onDownstreamGone({ isLocal, isReset, flag, details }: StreamLoss): void {
    if (this.#hasEnded) return;
    this.flags |= flag;
    this.details = details;
    this.count(isLocal ? downstream_rq_tx_reset : downstream_rq_rx_reset);
    this.#end(this.context.clock.monotonicMs());
    this.upstream?.cancel(isReset);
  }

  // ---- From the router ----

  onNoHealthyUpstream(isUnresolved: boolean): void {
    const reply = isUnresolved ? replies.DNS_FAILURE : replies.NO_HEALTHY_UPSTREAM;
    this.chargeUpstream(reply.status);
    this.dropUpstream();
    this.giveUp(reply);
  }

  onUpstreamFailure(failure: UpstreamFailure, transport: string, wasRetried: boolean): void {
    const reply = replies.upstreamReset(failure, transport, wasRetried);
    this.chargeUpstream(reply.status);
    if (failure === 'overflow') this.upstream?.cluster.noteDropped(false);
    this.dropUpstream();
    this.flags |= flagBit(replies.failureFlag(failure));
    if (this.wantedFacts !== null) this.wantedFacts.upstreamTransportFailure = transport;
    if (this.#response === STARTED) {
      this.details = `upstream_reset_after_response_started{${failure.replaceAll(' ', '_')}}`;
      this.count(rq_reset_after_downstream_response_started);
    }
    this.giveUp(reply, ResetReason.upstream);
  }

  onInterimHead(): boolean {
    const { settings, responseLines } = this.manager;
    const { response: head } = this.context.codec;
    if (!settings.proxiesInterim || this.#response !== NOTHING) return false;
    const { status } = head;
    if (status === CONTINUE && this.isContinueSent) return false;
    responseLines.applyVia(head);
    if (!this.codec.writeInterim()) return false;
    this.manager.countResponse(status);
    return true;
  }

  /** The response head lies in the codec. @returns false when no more should come before `resumeResponse`. */
  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    const { settings, responseLines } = this.manager;
    const head = this.context.codec.response;
    this.status = head.status;
    if (this.#tunnel === TUNNEL_AWAITED) this.#settleTunnel(head);
    if (this.wantedFacts !== null) noteProgress(this.wantedFacts, end > start, isEnd, nowMs);
    if (!settings.suppressProxyHeaders) {
      const serviceMs = this.isRequestComplete ? Math.trunc(nowMs - this.requestCompleteMs) : 0;
      applyServiceTime(head, responseLines.names, serviceMs);
    }
    if (this.trace !== null) this.trace.editResponse(head);
    const isEdited = hasResponseEdits(this);
    if (isEdited) this.#editResponse(head, head.status, false);
    const filters = this.filters;
    const { framing } = head;
    if (filters === null || !filters.encodes) return this.respond(bytes, start, end, isEnd, isEdited, framing, nowMs);
    return filters.encoding.begin(bytes, start, end, isEnd, framing, this.#takeResponseTrailers(), this.awaitsTunnel);
  }

  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean {
    const filters = this.filters;
    if (this.wantedFacts !== null) noteProgress(this.wantedFacts, end > start, isEnd, nowMs);
    if (filters === null || !filters.encodes || filters.encoding.isTransparent) {
      return this.respondBody(bytes, start, end, isEnd, isSlab, nowMs);
    }
    return filters.encoding.push(bytes, start, end, isEnd, this.#takeResponseTrailers());
  }

  // ---- From the filters, or straight from the router where there are none ----

  /** The response's head lies in the codec and lacks only what the connection manager adds. */
  respond(
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    isEdited: boolean,
    framing: number,
    nowMs: number,
  ): boolean {
    const { codec, date } = this.context;
    const { responseLines } = this.manager;
    const head = codec.response;
    responseLines.apply(head, date.text(nowMs), isEdited);
    if (this.flags !== NO_FLAGS && responseLines.proxyStatus !== null) {
      const told = responseLines.proxyStatus.value(this.flags, this.details);
      if (told !== '') head.append('proxy-status', told);
    }
    if (this.requestId !== '') {
      head.removeField(REQUEST_ID);
      head.append(REQUEST_ID, this.requestId);
    }
    const opensTunnel = this.#tunnel === TUNNEL_AWAITED;
    const error = this.codec.prepareHead(opensTunnel ? Framing.TUNNEL : framing, isEnd, this.wantedFacts !== null);
    if (error < 0) {
      this.refuseResponse(codecError(error).reason);
      return true;
    }
    this.status = head.status;
    this.#response = STARTED;
    if (opensTunnel) return this.#openTunnel(bytes, start, end, nowMs);
    if (isEnd) this.#passTrailers();
    const goesOn = this.codec.writeHead(this.wantedFacts, bytes, start, end, isEnd, nowMs);
    if (isEnd) this.#completeResponse(nowMs);
    return goesOn;
  }

  respondBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean {
    if (isEnd) this.#passTrailers();
    if (this.wantedFacts !== null) this.wantedFacts.bytesSent += end - start;
    const goesOn = this.codec.writeBody(bytes, start, end, isEnd, isSlab);
    if (isEnd) this.#completeResponse(nowMs);
    return goesOn;
  }

  /** The response's head cannot be written as it has become. */
  refuseResponse(reason: string): void {
    this.context.logs.router.warning(`cannot rewrite a response: ${reason}`);
    this.giveUp(replies.REWRITE_FAILED);
  }

  // ---- Replies of the proxy's own ----

  /** Answers in place of an upstream, in the form that this client expects. Only before a response has begun. */
  reply(wanted: replies.LocalReply): void {
    this.filters?.abandon();
    if (this.#tunnel === TUNNEL_AWAITED) this.#refuseTunnel();
    const nowMs = this.context.clock.monotonicMs();
    this.status = wanted.status;
    this.flags |= flagBit(wanted.flag);
    this.details = wanted.details;
    const replyRules = wanted.isWhole === true ? null : this.manager.replyRules;
    const worded = wanted.format === undefined ? wanted : this.#worded(wanted, wanted.format, nowMs);
    const edited = replyRules === null ? null : this.#editedHead(worded);
    const told = edited === null ? worded : replyRules!.rewrite(worded, edited, this.facts, nowMs);
    const { proxyStatus } = this.manager.responseLines;
    const reply = replies.inForm(proxyStatus === null ? told : proxyStatus.restate(told, this.flags), this.replyForm);
    edited?.restate(reply);
    this.status = reply.status;
    const lines = this.#replyLines(reply, edited, nowMs);
    // A filter has seen to another answer.
    if (lines === null) return;
    // Whoever sends such requests may have meant something else by what comes behind them.
    const endsHttp1 = wanted.status === BAD_REQUEST && this.manager.settings.http1?.survivesBadRequests !== true;
    const head = this.codec.prepareReply(lines, endsHttp1);
    const body =
      this.methodId !== Method.HEAD && replies.hasBody(reply) ? (reply.bytes ?? Buffer.from(reply.body)) : NO_BYTES;
    this.#response = STARTED;
    this.wantedFacts?.noteReply(head, reply.body, body.length, nowMs);
    this.codec.writeReply(head, body);
    this.#completeResponse(nowMs);
  }

  #worded(reply: replies.LocalReply, { render, contentType }: BodyFormat, nowMs: number): replies.LocalReply {
    const { facts } = this;
    facts.endMs = nowMs;
    facts.localReplyBody = reply.body;
    const bytes = Buffer.from(render(facts), 'latin1');
    return { ...reply, body: bytes.toString(), bytes, contentType };
  }

  /**
   * What has gone wrong becomes a reply while there is no response, else the end of the connection. Nothing happens if
   * the stream is over already.
   */
  giveUp(reply: replies.LocalReply, reason: ResetReason = ResetReason.internal): void {
    if (this.#hasEnded) return;
    if (reply === replies.REQUEST_HELD_TOO_LARGE) this.count(downstream_rq_too_large);
    else if (reply === replies.RESPONSE_HELD_TOO_LARGE) this.count(rs_too_large);
    this.dropUpstream()?.cancel(true);
    if (this.#response === NOTHING) {
      this.reply(reply);
      return;
    }
    this.breakOff(reply, reason);
  }

  /** Ends the stream without an answer, or in the midst of one. @param reply what would have been said. */
  protected breakOff(reply: replies.LocalReply, reason: ResetReason): void {
    this.flags |= flagBit(reply.flag);
    // A failure of the upstream has said more of itself than a reply that cannot be sent.
    if (this.details === VIA_UPSTREAM) this.details = reply.details;
    this.count(downstream_rq_tx_reset);
    this.#end(this.context.clock.monotonicMs());
    this.codec.resetStream(reason);
  }

  // ---- For the request side ----

  /** Some tunnel is there, or may come to be. */
  protected get hasTunnel(): boolean {
    return this.#tunnel !== NO_TUNNEL;
  }

  get isResponseComplete(): boolean {
    return this.#response === COMPLETE;
  }

  /** The cluster counts what the client is told in place of a response of its own. */
  protected chargeUpstream(status: number): void {
    if (this.upstream === null || this.#response !== NOTHING) return;
    const { cluster, host } = this.upstream;
    countStatus(this.context, cluster, host, status, this, host?.canary ?? false);
  }

  /** The request to the upstream is over, or is to be. A reply in its place still says how often it was sent. */
  protected dropUpstream(): ForwardedRequest | null {
    const { upstream } = this;
    if (upstream !== null && upstream.host !== null) this.#attempts = upstream.attempts;
    if (upstream !== null) this.formerUpstream = upstream;
    this.upstream = null;
    return upstream;
  }

  protected awaitTunnel(): void {
    this.#tunnel = TUNNEL_AWAITED;
    this.codec.awaitTunnel();
  }

  // ---- Inside ----

  /** The final head has come: is it the one that opens the tunnel? */
  #settleTunnel(head: ResponseHead): void {
    if (head.framing === Framing.TUNNEL) keepUpgradeFields(head);
    else this.#refuseTunnel();
  }

  #refuseTunnel(): void {
    this.#tunnel = NO_TUNNEL;
    if (this.codec.refuseTunnel()) this.completeRequest(this.headMs);
  }

  /** What follows the head, both ways, is not HTTP. */
  #openTunnel(bytes: Buffer, start: number, end: number, nowMs: number): boolean {
    this.#tunnel = TUNNEL_OPEN;
    const goesOn = this.codec.writeHead(this.wantedFacts, bytes, start, end, false, nowMs);
    if (this.manager.settings.furtherLogEntries.onTunnel) {
      this.logOnTheWay('DownstreamTunnelSuccessfullyEstablished', nowMs);
    }
    this.codec.openTunnel();
    return goesOn;
  }

  /** @param edited the head, where it is there already. @returns null when there is another answer. */
  #replyLines(reply: replies.LocalReply, edited: ReplyHead | null, nowMs: number): string | null {
    const { settings, responseLines } = this.manager;
    const date = this.context.date.text(nowMs);
    let extra = '';
    if (reply.isOverload && !settings.suppressProxyHeaders) extra = `${responseLines.names.overloaded}: true\r\n`;
    if (reply.isLocalOverload && settings.tellsOfOverload) extra = `${responseLines.names.localOverloaded}: true\r\n`;
    if (reply.isDropOverload && !settings.suppressProxyHeaders) extra = `${responseLines.names.dropOverload}: true\r\n`;
    if (this.requestId !== '') extra += `${REQUEST_ID}: ${this.requestId}\r\n`;
    if (this.trace !== null) extra += this.trace.replyLine();
    if (responseLines.proxyStatus !== null) extra += responseLines.proxyStatus.line(this.flags, this.details);
    const filters = this.filters;
    const isFiltered = filters !== null && (filters.encodes || reply.editHead !== undefined);
    if (edited === null && !isFiltered && !hasResponseEdits(this)) {
      return replies.localReplyLines(reply, responseLines.local, date, extra);
    }
    const head = edited ?? this.#editedHead(reply);
    if (isFiltered && !filters.encodeLocalReply(head, reply)) return null;
    head.setOwn(responseLines.local, date);
    return head.lines() + extra;
  }

  /** Of a reply, with what its route asks for. */
  #editedHead(reply: replies.LocalReply): ReplyHead {
    const head = new ReplyHead(reply);
    if (hasResponseEdits(this)) this.#editResponse(head, reply.status, true);
    return head;
  }

  /** Applies what the route asks for. @param status of the response at hand. */
  #editResponse(head: EditableHead, status: number, isLocal: boolean): void {
    this.status = status;
    this.editedHead = head;
    const attempts = this.upstream?.attempts ?? this.#attempts;
    editResponse(head, this, this.manager.responseLines.names, attempts, isLocal);
    this.editedHead = null;
  }

  #completeResponse(nowMs: number): void {
    this.#response = COMPLETE;
    if (!this.isRequestComplete) this.count(downstream_rq_response_before_rq_complete);
    this.manager.countResponse(this.status);
    if (this.wantedFacts !== null) this.wantedFacts.answerEndMs = nowMs;
    this.#end(nowMs);
    this.codec.endStream(nowMs);
  }

  #end(nowMs: number): void {
    this.#hasEnded = true;
    this.filters?.destroy();
    this.closeRecord(nowMs);
    if (this.isUpgradeCounted) this.count(downstream_cx_upgrades_active, -1);
    this.codec.deadlines.clearLimits();
  }

  /** The client may have them behind the response that ends now. */
  #passTrailers(): void {
    const trailers = this.responseTrailers;
    this.#noteGrpcStatus(trailers);
    if (trailers === null || !this.codec.takesTrailers) return;
    if (this.wantedFacts !== null) this.wantedFacts.responseTrailers = trailers;
    this.codec.responseTrailers = trailers;
  }

  #takeResponseTrailers(): Trailers | null {
    const trailers = this.responseTrailers;
    this.responseTrailers = null;
    this.#noteGrpcStatus(trailers);
    return trailers;
  }

  /** Filters may put it elsewhere, and not every client gets trailers. */
  #noteGrpcStatus(trailers: Trailers | null): void {
    if (trailers === null || this.wantedFacts === null) return;
    this.wantedFacts.grpcTrailer = trailers.get('grpc-status') ?? this.wantedFacts.grpcTrailer;
  }
}

/** How far the response has come from the upstream. */
function noteProgress(facts: HttpStreamFacts, hasBody: boolean, isEnd: boolean, nowMs: number): void {
  if (hasBody && facts.bodyStartMs < 0) facts.bodyStartMs = nowMs;
  if (isEnd) facts.responseEndMs = nowMs;
}
