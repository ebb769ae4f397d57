% SPDX-License-Identifier: Apache-2.0
%
% What a broker's start does first, by `-run file eval`: load all modules of RabbitMQ and of what it uses at once. It loads
% them all anyway, one after the other, and the machine makes a table of all functions anew for each: that was two fifths of a start.
% A machine that this one starts, only for epmd to be there, needs none of them.
os:unsetenv("ERL_AFLAGS"),
Key = fun(Key, Application) ->
    {ok, [{application, _, Keys}]} = file:consult(code:where_is_file(atom_to_list(Application) ++ ".app")),
    proplists:get_value(Key, Keys, [])
end.
Closure = fun Add(Application, Found) ->
    case lists:member(Application, Found) of
        true -> Found;
        false -> lists:foldl(Add, [Application | Found], Key(applications, Application))
    end
end.
code:ensure_modules_loaded(lists:append([Key(modules, Application) || Application <- Closure(rabbit, Closure(mnesia, []))])).
