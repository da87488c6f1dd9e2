package program

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/localstack"
)

// TestServesUntilLoadBalancersKnow: after SIGTERM web keeps serving new connections for
// SHUTDOWN_DELAY. During that time /readyz fails, and answers close their connections.
func TestServesUntilLoadBalancersKnow(t *testing.T) {
	const delay = 5 * time.Second
	n := startNode(t, map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "HTTP_ADDR": "127.0.0.1:0",
		"ADMIN_API_KEY": testKey, "SHUTDOWN_DELAY": delay.String()})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (status int, text string, closes bool, err error) {
		answer, err := client.Get("http://" + n.address + path)
		if err != nil {
			return 0, "", false, err
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b), answer.Close, err
	}
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- n.stop() }()
	eventually(t, "/readyz fails", func() bool {
		status, text, _, err := get("/readyz")
		if err != nil {
			t.Fatalf("the port was closed after %s: %v", time.Since(began), err)
		}
		return status == http.StatusServiceUnavailable && strings.Contains(text, "shutting down")
	})
	if status, _, closes, err := get("/livez"); status != http.StatusOK || !closes || err != nil {
		t.Errorf("%d, %v, closes %v", status, err, closes)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("the port was closed after %s", took)
	}
}
