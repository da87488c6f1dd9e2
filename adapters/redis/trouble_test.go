package redis

import (
	"net/http/httptest"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

// TestTrouble calls servers whose configuration differs from the client's, and checks that the
// error names the difference.
func TestTrouble(t *testing.T) {
	guarded := localstack.RedisServer(t)
	admin := goredis.NewClient(&goredis.Options{Addr: strings.TrimSuffix(strings.TrimPrefix(guarded.URL(), "redis://"), "/0")})
	defer admin.Close()
	musttest.OK(t, admin.ConfigSet(t.Context(), "requirepass", "right").Err())
	untrusted := httptest.NewTLSServer(nil)
	defer untrusted.Close()
	for _, c := range []struct{ address, says string }{
		{strings.Replace(guarded.URL(), "://", "://:hunter2@", 1), "refuses the user name or password"},
		{guarded.URL(), "wants a password"},
		{strings.Replace(untrusted.URL, "https://", "rediss://", 1), "certificate that is not trusted"},
		{"redis://127.0.0.1:1/0", "does not answer"},
	} {
		client, err := Open(c.address)
		musttest.OK(t, err)
		err = client.Ping(t.Context()).Err()
		if err == nil {
			t.Fatalf("%s: answers", c.says)
		}
		if said := Trouble(err); !strings.Contains(said, c.says) || strings.Contains(said, "hunter2") {
			t.Errorf("%v: says %q, want %q", err, said, c.says)
		}
		client.Close()
	}
}
