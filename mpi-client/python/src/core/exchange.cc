#include "exchange.h"

extern "C" {
#include "exchange/exchange.h"
}

supply_status_t open_exchange(Calls &transport, supply_t **supply, const ExchangeOptions &from) {
    supply_exchange_options_t options;
    supply_exchange_options_init(&options);
    options.policy = from.policy;
    options.column = from.column.empty() ? nullptr : from.column.c_str();
    options.nulls_together = from.nulls_together;
    options.fraction = from.fraction;
    options.seed = from.seed;
    options.window_bytes = from.window_bytes;
    options.memory_bytes = from.memory_bytes;
    options.spill_folder = from.spill_folder.empty() ? nullptr : from.spill_folder.c_str();
    options.messages_only = from.messages_only;
    struct transport functions = transport.functions();
    functions.on_end = Calls::on_end;
    const Calls::Waiting waiting(transport);
    return supply__exchange_over(supply, &functions, &options);
}
