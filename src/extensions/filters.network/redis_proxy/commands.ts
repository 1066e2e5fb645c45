// The commands of Redis that a proxy can take: where their keys are, and what is made of answers from several hosts.

/**
 *   key        one key, the first argument
 *   script     a script, the number of its keys, and those; all of them go where the first does
 *   get        each key is asked for on its own, and the answers make an array
 *   set        keys and values in turn, each pair on its own; OK when all were
 *   sum        each key on its own; the answers are added up
 */
export type CommandKind = 'key' | 'script' | 'get' | 'set' | 'sum';

export interface Command {
  readonly name: string;
  readonly kind: CommandKind;
  readonly reads: boolean;
}

const READS = [
  'bitcount bitfield_ro bitpos dump exists expiretime geodist geohash geopos get getbit getrange georadius_ro georadiusbymember_ro',
  'geosearch hexists hget hgetall hkeys hlen hmget hrandfield hscan hstrlen hvals lindex llen lpos lrange mget pexpiretime pfcount pttl scard',
  'sismember smembers smismember srandmember sscan strlen ttl type xlen xrange xrevrange xpending zcard zcount zlexcount zmscore zrandmember',
  'zrange zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore lcs substr touch',
];
const WRITES = [
  'append bitfield decr decrby expire expireat geoadd georadius georadiusbymember getdel getex getset hdel hincrby hincrbyfloat hmset',
  'hset hsetnx incr incrby incrbyfloat linsert lpop lpush lpushx lrem lset ltrim persist pexpire pexpireat pfadd psetex restore rpop rpush rpushx',
  'sadd set setbit setex setnx setrange spop srem sort xack xadd xautoclaim xclaim xdel xtrim zadd zincrby zpopmin zpopmax zrem zremrangebylex',
  'zremrangebyrank zremrangebyscore mset del unlink',
];
const KINDS: Readonly<Record<string, CommandKind>> = {
  mget: 'get',
  mset: 'set',
  del: 'sum',
  exists: 'sum',
  touch: 'sum',
  unlink: 'sum',
};

/** @param further names of commands with one key. */
export function commandTable(further: readonly string[]): ReadonlyMap<string, Command> {
  const table = new Map<string, Command>();
  const add = (names: string, reads: boolean): void => {
    for (const name of names.split(' ')) table.set(name, { name, kind: KINDS[name] ?? 'key', reads });
  };
  for (const names of READS) add(names, true);
  for (const names of WRITES) add(names, false);
  for (const name of ['eval', 'evalsha']) table.set(name, { name, kind: 'script', reads: false });
  for (const name of further) if (!table.has(name)) table.set(name, { name, kind: 'key', reads: false });
  return table;
}
