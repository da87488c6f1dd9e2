package program

import (
	"net/http"
	"strconv"
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

// TestProcessesShareRateLimits: the requests that one process has allowed a key are deducted from
// the key's budget in the other process.
func TestProcessesShareRateLimits(t *testing.T) {
	const limit = 1200
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "HTTP_ADDR": "127.0.0.1:0",
		"ADMIN_API_KEY": testKey, "RATE_LIMIT_KEY_PER_MINUTE": strconv.Itoa(limit), "CONSOLE_SECOND_FACTOR": "optional"}
	nodes := []node{startNode(t, env), startNode(t, env)}
	remaining := func(n node) int {
		q, err := http.NewRequest(http.MethodGet, "http://"+n.address+"/api/v1/admin/templates", nil)
		musttest.OK(t, err)
		q.Header.Set("Authorization", "Bearer "+testKey)
		answer, err := http.DefaultClient.Do(q)
		musttest.OK(t, err)
		answer.Body.Close()
		left, err := strconv.Atoi(answer.Header.Get("RateLimit-Remaining"))
		if err != nil {
			t.Fatalf("%d without RateLimit-Remaining: %v", answer.StatusCode, answer.Header)
		}
		return left
	}
	sent := 0
	eventually(t, "the second process counts the requests of the first", func() bool {
		// The first process keeps sending, so that a pause of this machine does not refill its
		// budget.
		for range 50 {
			remaining(nodes[0])
		}
		sent++
		return remaining(nodes[1]) < limit-sent-30
	})
}
