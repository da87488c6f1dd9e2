package drops

import (
	"context"
	"net/http"
	"slices"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// Shop is where templates belong.
type Shop struct {
	Number   string `json:"number" example:"10"`
	Name     string `json:"name" example:"Tea House"`
	Timezone string `json:"timezone" example:"Asia/Shanghai"`
}

// ShopWish is the part of a shop that a client may set.
type ShopWish struct {
	Name     string `json:"name" minLength:"1" maxLength:"120" example:"Tea House"`
	Timezone string `json:"timezone" maxLength:"64" doc:"IANA; the console shows the shop's instants in it." example:"Asia/Shanghai"`
}

// ShopList is every shop the caller may see.
type ShopList struct {
	Shops []Shop `json:"shops" nullable:"false"`
}

func (h *handlers) shopRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/shops", "list-shops", "List shops", pipeline.Route{Cells: &cells.List{ID: "number"}}), h.listShops)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, "/admin/shops/{number}", "put-shop", "Name a shop and set its time zone",
		pipeline.Route{Description: "Creates the shop if there is none with the number.", Codes: []string{"shop_moved"},
			Example: `{"name":"Tea House","timezone":"Asia/Shanghai"}`}), h.putShop)
}

func (h *handlers) listShops(ctx context.Context, _ *struct{}) (*struct{ Body ShopList }, error) {
	by := pipeline.ActorOf(ctx)
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	shops, err := h.Shops.Shops(ctx)
	if err != nil {
		return nil, err
	}
	shops = slices.DeleteFunc(shops, func(s template.Shop) bool { return !by.Can(staff.View, s.Number) })
	return &struct{ Body ShopList }{ShopList{pipeline.Each(shops, func(s template.Shop) Shop { return Shop{pipeline.Decimal(s.Number), s.Name, s.Timezone} })}}, nil
}

func (h *handlers) putShop(ctx context.Context, in *struct {
	Number string `path:"number" pattern:"^[1-9][0-9]{0,18}$"`
	Body   ShopWish
}) (*struct{ Body Shop }, error) {
	number, err := pipeline.ParseID("path.number", in.Number)
	if err != nil {
		return nil, err
	}
	if err := pipeline.ActorOf(ctx).May(staff.ManageTemplates, number); err != nil {
		return nil, err
	}
	name, err := template.ShopName(in.Body.Name)
	if err := pipeline.Merge(err, checkZone("timezone", in.Body.Timezone)); err != nil {
		return nil, err
	}
	shop := template.Shop{Number: number, Name: name, Timezone: in.Body.Timezone}
	if err := h.Shops.NameShop(ctx, shop, staff.Entry{Actor: pipeline.ActorOf(ctx), Action: "shop.save", ObjectKind: "shop",
		ObjectID: in.Number, ShopNumber: number}); err != nil {
		return nil, err
	}
	return &struct{ Body Shop }{Shop{in.Number, name, in.Body.Timezone}}, nil
}

func checkZone(place, s string) error {
	if !user.ValidZone(s) {
		return pipeline.Refused(place, "must be an IANA time zone such as Asia/Shanghai")
	}
	return nil
}
