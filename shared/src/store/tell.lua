-- In a cluster. Keys: those of `renew.lua`. Arguments: channel, frame, `plain`. Gives how many heard it, as
-- far as one node knows.
local heard = redis.call(say, ARGV[1], ARGV[2])
return say == 'SPUBLISH' and heard or 1
