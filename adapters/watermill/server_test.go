package watermill

import (
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/musttest"

	goredis "github.com/redis/go-redis/v9"
)

// A redisServer is a real, empty Redis of one test.
type redisServer struct {
	*localstack.Redis
	URL string
}

func startRedis(t *testing.T) *redisServer {
	t.Helper()
	r := localstack.RedisServer(t)
	return &redisServer{Redis: r, URL: r.URL()}
}

func (s *redisServer) kill(t *testing.T) {
	t.Helper()
	musttest.OK(t, s.Kill())
}

// restart starts the killed server again on its port, with nothing in it.
func (s *redisServer) restart(t *testing.T) {
	t.Helper()
	musttest.OK(t, s.Restart(t.Context(), true))
}

func (s *redisServer) client(t *testing.T) *goredis.Client {
	t.Helper()
	options, err := goredis.ParseURL(s.URL)
	musttest.OK(t, err)
	return goredis.NewClient(options)
}

var eventually = localstack.Eventually
