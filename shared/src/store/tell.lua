-- In a cluster. Keys: as above. Arguments: channel, frame, `plain`. Gives how many heard it, as far as one
-- node knows.
if ARGV[3] == 'plain' then redis.call('SET', KEYS[4], '1', 'PX', 10000) end
local say = KEYS[4] and redis.call('EXISTS', KEYS[4]) == 0 and 'SPUBLISH' or 'PUBLISH'
local heard = redis.call(say, ARGV[1], ARGV[2])
return say == 'SPUBLISH' and heard or 1
