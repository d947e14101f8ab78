// What Redis does for the sessions' store, each as one step. Times are epoch milliseconds of Redis' clock.

const NOW = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Keys: the lease, the line (tokens by arrival), who waits (tokens by when they count as dead). Arguments: token, lease in
 * ms, time between two of its questions in ms. 1: the lease is the token's; 0: it waits.
 */
export const ACQUIRE = NOW + `
local token = ARGV[1]
local holder = redis.call('GET', KEYS[1])
if holder == token then return 1 end
if redis.call('EXISTS', KEYS[2]) == 1 then
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
    if dead ~= token then
      redis.call('ZREM', KEYS[2], dead)
      redis.call('ZREM', KEYS[3], dead)
    end
  end
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if not holder and (not first or first == token) then
  redis.call('SET', KEYS[1], token, 'PX', ARGV[2])
  redis.call('ZREM', KEYS[2], token)
  redis.call('ZREM', KEYS[3], token)
  return 1
end
if not redis.call('ZSCORE', KEYS[2], token) then
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
  redis.call('ZADD', KEYS[2], (last or 0) + 1, token)
end
redis.call('ZADD', KEYS[3], now + ARGV[3], token)
redis.call('PEXPIRE', KEYS[2], 2 * ARGV[3])
redis.call('PEXPIRE', KEYS[3], 2 * ARGV[3])
return 0`;

/** Keys: the lease. Arguments: token, lease in ms. 0: the lease is not the token's any more. */
export const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** Keys as of {@linkcode ACQUIRE}. Argument: token. */
export const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1`;

/**
 * Keys: the session, all sessions, its lease. Arguments: its name among all, token, bytes, who serves it, time to live in
 * ms. 0: the lease is not the token's any more, and nothing was changed.
 */
export const SAVE = NOW + `
if redis.call('GET', KEYS[3]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'bytes', ARGV[3], 'served_by', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + ARGV[5], ARGV[1])
return 1`;

/** Keys as of {@linkcode SAVE}. Arguments: its name among all, token. 0 as there. */
export const DELETE = `
if redis.call('GET', KEYS[3]) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1`;

/** Keys: the session, all sessions. Arguments: its name among all, who serves it, time to live in ms. 0: there is none. */
export const TOUCH = NOW + `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'served_by', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
return 1`;

/** Key: all sessions. How many there are. */
export const COUNT = NOW + `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZCARD', KEYS[1])`;
