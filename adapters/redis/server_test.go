package redis

import (
	"testing"

	"dropbell/adapters/localstack"
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
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
}

var eventually = localstack.Eventually
