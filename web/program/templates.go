package program

import (
	"context"

	"dropbell/adapters/lookup"
	"dropbell/domain/template"
)

// keeper saves templates and makes this process see the change at once;
// others learn of it from the event.
type keeper struct {
	template.Store
	cache *lookup.Templates
}

func (k keeper) Insert(ctx context.Context, c template.Change) (template.Template, error) {
	t, err := k.Store.Insert(ctx, c)
	if err == nil {
		k.cache.Forget(t.ID)
	}
	return t, err
}

func (k keeper) Save(ctx context.Context, c template.Change) (template.Template, error) {
	defer k.cache.Forget(c.Template.ID)
	return k.Store.Save(ctx, c)
}
