package redisclient_test

import (
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisclient"
)

func TestCommasMeanACluster(t *testing.T) {
	client, err := redisclient.New("redis://u:p@a:1,redis://u:p@b:2/0, c:3", 7)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	options := client.(*goredis.ClusterClient).Options()
	if got := strings.Join(options.Addrs, " "); got != "a:1 b:2 c:3" {
		t.Errorf("addresses %q", got)
	}
	if options.Password != "p" || options.PoolSize < 7 {
		t.Errorf("password %q, pool %d", options.Password, options.PoolSize)
	}
}
