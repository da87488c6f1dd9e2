package work

import (
	"context"

	"dropbell/domain/job"
	"dropbell/views/ui"
)

func workStates(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "jobs.all_states")}}
	for _, s := range job.States() {
		list = append(list, ui.Option{Value: string(s), Label: ui.T(ctx, "jobs.state."+string(s))})
	}
	return list
}
