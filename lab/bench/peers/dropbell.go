package peers

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"dropbell/lab/bench/scenario"
)

// runDropbell runs the scenario fanout in a process of its own.
func runDropbell(ctx context.Context, n int) (outcome, error) {
	out, err := scenario.Self(ctx, "fanout", "-json", "-runs", "1", "-n", strconv.Itoa(n)).Output()
	if err != nil {
		return outcome{}, err
	}
	var r struct {
		First       float64 `json:"first_seconds"`
		All         float64 `json:"all_seconds"`
		RedisPer    float64 `json:"redis_bytes_per_reminder"`
		PostgresPer float64 `json:"postgres_bytes_per_reminder"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return outcome{}, err
	}
	return outcome{First: seconds(r.First), All: seconds(r.All), Bytes: r.RedisPer + r.PostgresPer}, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
