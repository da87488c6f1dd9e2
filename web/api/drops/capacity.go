package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/forecast"
	"dropbell/domain/staff"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// Capacity is how many processes are wanted now, and why.
type Capacity struct {
	Web         int              `json:"web" doc:"Processes of web." example:"3"`
	Worker      int              `json:"worker" doc:"Processes of worker, if each has all roles." example:"2"`
	WorkerRoles WorkerRoles      `json:"worker_roles" doc:"Processes of worker, if they have only this role. The work of other roles does not grow with the customers."`
	Until       time.Time        `json:"until" doc:"Loads up to this instant were considered: 15 minutes ahead."`
	Reasons     []CapacityReason `json:"reasons" nullable:"false" doc:"All loads until then, the greatest first. The numbers follow from the greatest sum of loads that coincide; two of each are always wanted."`
}

// WorkerRoles are numbers of workers by role.
type WorkerRoles struct {
	Delivery int `json:"delivery" example:"2"`
	Gate     int `json:"gate" example:"2"`
}

// CapacityReason is a load.
type CapacityReason struct {
	Text     string    `json:"text" example:"drop 42 opens at 20:00, 310,000 expected"`
	Kind     string    `json:"kind" enum:"opening,reminder,campaign"`
	ID       string    `json:"id" doc:"Of the template, or of the campaign." example:"42"`
	Name     string    `json:"name" example:"Moon cakes"`
	Target   string    `json:"target" enum:"web,delivery,gate" doc:"What the load needs: web, or workers with the role."`
	At       time.Time `json:"at"`
	Until    time.Time `json:"until" doc:"The instant to which the load counts."`
	Expected int64     `json:"expected" doc:"Customers or messages." example:"310000"`
	Rate     float64   `json:"per_second" example:"31000"`
	Cores    float64   `json:"cores" doc:"Processor cores that are busy. Processes are planned for a load of 0.6." example:"1.24"`
}

// capacityInput describes the caller's processes.
type capacityInput struct {
	WebCores       float64 `query:"web_cores" minimum:"0.1" maximum:"256" default:"1" doc:"Cores of one process of web."`
	WorkerCores    float64 `query:"worker_cores" minimum:"0.1" maximum:"256" default:"1" doc:"Cores of one process of worker."`
	PerReservation float64 `query:"per_reservation" minimum:"0.01" maximum:"1000" default:"1" doc:"Requests that an opening brings for each customer who has reserved a reminder."`
}

func (h *handlers) capacityRoute() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/capacity", "capacity", "Show how many processes are wanted now",
		pipeline.Route{Cells: &cells.List{Sums: true}, Description: "For autoscalers, such as KEDA's metrics-api: the processes for the openings, reminders and campaigns of the next 15 minutes, computed from reservations, " +
			"the forecast and measured costs. A rush lasts ten seconds, so scaling that reacts to it is too late. The paths web, worker, worker_roles.delivery and worker_roles.gate are numbers."}), h.capacity)
}

func (h *handlers) capacity(ctx context.Context, in *capacityInput) (*struct{ Body Capacity }, error) {
	if err := pipeline.ActorOf(ctx).May(staff.View, 0); err != nil {
		return nil, err
	}
	c, err := h.Capacities.Capacity(ctx, forecast.Process{WebCores: in.WebCores, WorkerCores: in.WorkerCores, PerReservation: in.PerReservation})
	if err != nil {
		return nil, err
	}
	return &struct{ Body Capacity }{Capacity{c.Web, c.Worker, WorkerRoles{c.Delivery, c.Gate}, c.Until.UTC(), pipeline.Each(c.Loads, func(l forecast.Load) CapacityReason {
		return CapacityReason{l.Text(), string(l.Kind), pipeline.Decimal(l.ID), l.Name, string(l.Target), l.At.UTC(), l.Until.UTC(), l.Expected, l.Rate, l.Cores}
	})}}, nil
}
